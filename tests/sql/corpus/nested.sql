--- an element of an array
SELECT id, tags[0] FROM customers WHERE size(tags) > 0
--- element_at counts from one
SELECT id, element_at(tags, 1) FROM customers WHERE size(tags) > 0
--- the value of a key
SELECT id, props['a'] FROM customers
--- size of arrays and maps
SELECT id, size(tags), cardinality(props) FROM customers WHERE tags IS NOT NULL AND props IS NOT NULL
--- array_contains
SELECT id FROM customers WHERE array_contains(tags, 'vip')
--- lateral view
SELECT id, tag FROM customers LATERAL VIEW explode(tags) t AS tag
--- lateral view without a name of the table
SELECT id, tag FROM customers LATERAL VIEW explode(tags) AS tag WHERE tag <> 'new'
--- lateral view outer
SELECT id, tag FROM customers LATERAL VIEW OUTER explode(tags) t AS tag
--- two lateral views
SELECT id, a, b FROM customers LATERAL VIEW explode(tags) x AS a LATERAL VIEW explode(tags) y AS b WHERE a < b
--- lateral view of a map
SELECT id, k, v FROM customers LATERAL VIEW explode(props) t AS k, v
--- posexplode
SELECT id, p, tag FROM customers LATERAL VIEW posexplode(tags) t AS p, tag
--- explode in SELECT
SELECT id, explode(tags) AS tag FROM customers
--- explode as a table
SELECT c.id, t.tag FROM customers c, LATERAL explode(c.tags) AS t (tag)
--- explode in a join
SELECT c.id, t.tag FROM customers c JOIN LATERAL explode(c.tags) AS t (tag)
--- transform
SELECT id, transform(tags, t -> upper(t)) FROM customers
--- filter
SELECT id, filter(tags, t -> t LIKE 'v%') FROM customers
--- aggregate
SELECT id, aggregate(transform(tags, t -> length(t)), 0, (a, t) -> a + t) FROM customers
--- exists
SELECT id FROM customers WHERE exists(tags, t -> t = 'new')
--- collect_list in an order
SELECT customer, sort_array(collect_list(id)) FROM orders GROUP BY customer
--- collect_set
SELECT sort_array(collect_set(status)) FROM orders
--- sequence
SELECT id, sequence(1, 3) FROM people
--- array functions
SELECT id, array_join(tags, '-'), sort_array(tags) FROM customers
--- array_distinct and array_position
SELECT id, array_distinct(tags), array_position(tags, 'vip') FROM customers
--- slices of more than one
SELECT slice(array(id, 2, 3, 4), 2, 2) FROM people
--- a computed subscript
SELECT tags[id - 1] FROM customers WHERE id = 1
--- a number as key of a map
SELECT map(1, 'a', 2, 'b')[1] FROM people
--- a sequence that counts down
SELECT sequence(id, 1) FROM people
--- an array of columns
SELECT id, array(qty, 1, NULL)[1] FROM orders
--- struct
SELECT struct(id, name).name, named_struct('a', id).a FROM people
--- a struct with a star
SELECT struct(*) FROM people
--- a map of columns
SELECT map('id', id, 'boss', boss)['boss'] FROM people
--- map_keys
SELECT id, sort_array(map_keys(props)), sort_array(map_values(props)) FROM customers
--- stack
SELECT id, k, v FROM people LATERAL VIEW stack(2, 'a', id, 'b', boss) t AS k, v
--- inline
SELECT id, a, b FROM people LATERAL VIEW inline(array(named_struct('a', id, 'b', name), named_struct('a', boss, 'b', 'x'))) t AS a, b
--- slice and flatten
SELECT id, slice(tags, 1, 1), flatten(array(tags, tags)) FROM customers WHERE tags IS NOT NULL
