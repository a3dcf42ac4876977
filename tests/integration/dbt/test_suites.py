import importlib, inspect, os
import dbt.tests.adapter as root
def walk():
    base=list(root.__path__)[0]
    for d,_,fs in os.walk(base):
        for f in sorted(fs):
            if f.endswith(".py") and f!="__init__.py":
                rel=os.path.relpath(os.path.join(d,f),base)[:-3].replace(os.sep,".")
                m=importlib.import_module("dbt.tests.adapter."+rel)
                for n,c in sorted(vars(m).items()):
                    if inspect.isclass(c) and c.__module__==m.__name__ and any(a.startswith("test_") and callable(getattr(c,a)) for a in dir(c)):
                        if n.startswith("Test") and not (set(vars(c))-{"__module__","__doc__","__firstlineno__","__static_attributes__"}): continue
                        yield rel,n,c
for rel,n,c in walk():
    if rel.startswith("grants") or rel.startswith("python_model"): continue
    globals()["Test_"+rel.replace(".","_")+"__"+n]=type("Test_"+rel.replace(".","_")+"__"+n,(c,),{"__module__":__name__})
