--- a parameter by name {"n": 3}
SELECT id FROM orders WHERE qty > :n
--- a parameter twice {"n": 3}
SELECT id, :n FROM orders WHERE qty = :n
--- parameters by place [3, "open"]
SELECT id FROM orders WHERE qty > ? AND status = ?
--- parameters in a comment and a text do not count [3]
SELECT id, '?' /* ? */ FROM orders WHERE qty > ? -- ?
--- a parameter in a list {"a": "open", "b": "paid"}
SELECT id FROM orders WHERE status IN (:a, :b)
--- a parameter with BETWEEN {"low": 2, "high": 4}
SELECT id FROM orders WHERE qty BETWEEN :low AND :high
--- a parameter in LIMIT [ordered] {"n": 2}
SELECT id FROM orders ORDER BY id LIMIT :n
--- a parameter in a subquery {"city": "Berlin"}
SELECT id FROM orders WHERE customer IN (SELECT id FROM customers WHERE city = :city)
--- a text with a quote as parameter {"name": "O'Neil"}
SELECT id FROM customers WHERE name = :name
--- a parameter that is null {"x": null}
SELECT id FROM people WHERE boss = :x OR id = 1
--- a parameter in an expression {"f": 1.5}
SELECT id, qty * :f FROM orders WHERE qty IS NOT NULL
--- a parameter in a LIKE {"p": "A%"}
SELECT name FROM customers WHERE name LIKE :p
