--- inner join
SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id
--- join with USING
SELECT id, c.name, p.name FROM customers c JOIN people p USING (id)
--- natural join
SELECT * FROM (SELECT id, boss FROM people) NATURAL JOIN (SELECT id, city FROM customers)
--- natural join of tables
SELECT boss, city FROM people NATURAL LEFT JOIN customers
--- left join, with a condition on each side
SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON c.id = o.customer AND o.status = 'open' WHERE c.city = 'Berlin'
--- left join that asks for missing rows
SELECT c.id FROM customers c LEFT JOIN orders o ON c.id = o.customer WHERE o.id IS NULL
--- right join
SELECT c.name, o.id FROM customers c RIGHT JOIN orders o ON c.id = o.customer WHERE o.qty > 1
--- full join
SELECT c.id, o.id FROM customers c FULL OUTER JOIN orders o ON c.id = o.customer AND c.city = 'Paris'
--- cross join
SELECT p.id, n.n FROM people p CROSS JOIN numbers n WHERE n.n = 1
--- comma join
SELECT o.id, i.product FROM orders o, items i WHERE o.id = i.order_id AND i.n > 1
--- comma and join
SELECT count(*) FROM orders o, items i JOIN people p ON p.id = i.n WHERE o.id = i.order_id
--- semi join
SELECT id, name FROM customers c LEFT SEMI JOIN orders o ON c.id = o.customer AND o.qty > 2
--- semi join without LEFT
SELECT name FROM customers c SEMI JOIN orders o ON c.id = o.customer
--- anti join
SELECT id FROM customers c LEFT ANTI JOIN orders o ON c.id = o.customer
--- anti join without LEFT
SELECT name FROM customers c ANTI JOIN orders o ON c.id = o.customer AND o.status = 'open' WHERE c.id > 1
--- self-join
SELECT a.name, b.name AS boss FROM people a JOIN people b ON a.boss = b.id
--- self-join with different conditions
SELECT a.id, b.id FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id WHERE a.status = 'open' AND b.status = 'paid'
--- three of one table
SELECT a.id, c.name FROM people a LEFT JOIN people b ON a.boss = b.id LEFT JOIN people c ON b.boss = c.id
--- four tables
SELECT c.name, o.day, i.product, p.name FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id LEFT JOIN people p ON p.id = c.id WHERE i.price > 5
--- parentheses around a join
SELECT c.id, o.id, i.product FROM customers c LEFT JOIN (orders o JOIN items i ON o.id = i.order_id) ON c.id = o.customer
--- parentheses at the beginning
SELECT c.id, n.n FROM (customers c JOIN people p ON c.id = p.id) JOIN numbers n ON n.n = p.boss
--- a join on an expression
SELECT o.id, n.n FROM orders o JOIN numbers n ON o.qty % 4 = n.n - 1
--- a join on a range
SELECT o.id, n.n FROM orders o JOIN numbers n ON o.qty BETWEEN n.n AND n.n + 1
--- a null never joins
SELECT a.id, b.id FROM people a JOIN people b ON a.boss = b.boss
--- a null-safe join
SELECT a.id, b.id FROM people a JOIN people b ON a.boss <=> b.boss
--- lateral subquery
SELECT c.id, l.total FROM customers c, LATERAL (SELECT sum(amount) AS total FROM orders o WHERE o.customer = c.id) l
--- left join lateral
SELECT c.id, l.day FROM customers c LEFT JOIN LATERAL (SELECT max(day) AS day FROM orders o WHERE o.customer = c.id AND o.qty > 3) l ON true
--- a join of subqueries
SELECT a.status, a.n, b.total FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) a JOIN (SELECT status, sum(amount) AS total FROM orders GROUP BY status) b ON a.status = b.status
--- a condition on both sides under OR
SELECT o.id FROM orders o JOIN customers c ON o.customer = c.id WHERE (o.status = 'open' AND c.city = 'Berlin') OR (o.status = 'paid' AND c.city = 'Paris')
--- outer joins in a row
SELECT c.id, o.id, i.product FROM customers c LEFT JOIN orders o ON o.customer = c.id LEFT JOIN items i ON i.order_id = o.id AND i.n > 1 WHERE c.id < 4
--- USING in an outer join
SELECT id, boss, city FROM people FULL JOIN customers USING (id) WHERE id > 2
