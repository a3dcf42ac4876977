--- UNION
SELECT id FROM customers UNION SELECT customer FROM orders
--- UNION ALL
SELECT id, name FROM customers UNION ALL SELECT id, name FROM people
--- UNION ALL of stars
SELECT * FROM people UNION ALL SELECT * FROM people WHERE id = 1
--- INTERSECT
SELECT id FROM customers INTERSECT SELECT id FROM people
--- EXCEPT
SELECT id FROM customers EXCEPT SELECT customer FROM orders
--- MINUS
SELECT id FROM people MINUS SELECT id FROM customers
--- EXCEPT ALL
SELECT status FROM orders EXCEPT ALL SELECT status FROM orders WHERE id < 4
--- INTERSECT ALL
SELECT customer FROM orders INTERSECT ALL SELECT qty FROM orders
--- three sets
SELECT id FROM customers UNION SELECT id FROM people EXCEPT SELECT 1
--- parentheses around sets
(SELECT id FROM customers UNION SELECT id FROM people) INTERSECT (SELECT customer FROM orders)
--- sets with ORDER BY and LIMIT [ordered]
SELECT id FROM customers UNION SELECT customer FROM orders WHERE customer IS NOT NULL ORDER BY id LIMIT 4
--- a set in a subquery
SELECT count(*) FROM (SELECT name FROM customers UNION SELECT name FROM people)
--- a set in a WITH
WITH ids AS (SELECT id FROM customers UNION ALL SELECT id FROM people) SELECT id, count(*) FROM ids GROUP BY id
--- UNION with TABLE and VALUES
TABLE people UNION ALL VALUES (99, 1, 'x')
--- sets with conditions on each side
SELECT id FROM orders WHERE status = 'open' UNION ALL SELECT order_id FROM items WHERE n > 2
--- types are brought together
SELECT qty FROM orders UNION ALL SELECT amount FROM orders
--- nulls are equal in sets
SELECT note FROM orders INTERSECT SELECT city FROM customers
