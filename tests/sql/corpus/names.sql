--- a table with the name of a keyword
SELECT `select`, `from` FROM `order`
--- a table with the name of a keyword, without backticks
SELECT `group by` FROM order
--- names of tables in texts
SELECT 'FROM orders', "JOIN customers ON", id FROM people
--- names of tables in comments
SELECT id /* FROM orders /* nested JOIN items */ */ FROM people -- JOIN customers
--- a comment between the words
SELECT id FROM -- the table
  people /* p */ AS p
--- a comment with a quote
SELECT id FROM people -- it's
WHERE id > 1
--- a name in other letters
SELECT ID, Name FROM PEOPLE WHERE Id = 1
--- an alias with a blank
SELECT `the id`.id FROM people AS `the id`
--- an alias that is a keyword
SELECT left1.id, date.name FROM people left1 JOIN people date ON left1.boss = date.id
--- an alias like another table
SELECT orders.name FROM people AS orders
--- tables that swap their names
SELECT orders.name, people.status FROM people AS orders JOIN orders AS people ON people.customer = orders.id
--- a column like its table
SELECT order.`select` AS x FROM order
--- a text with braces
SELECT '{m0} {{x}} {', id FROM people
--- a text with a question mark and a colon
SELECT '? :name', id FROM people
--- quotes in texts
SELECT 'it''s', 'it\'s', "say \"x\"", 'a\\b' FROM people WHERE id = 1
--- texts beside each other
SELECT 'a' 'b' FROM people WHERE id = 1
--- escapes
SELECT 'tab\tnew\nline', 'ü\u00fc' FROM people WHERE id = 1
--- a raw text
SELECT r'a\nb' FROM people WHERE id = 1
--- EXTRACT … FROM
SELECT extract(YEAR FROM day), extract(DOY FROM day) FROM orders WHERE id < 5
--- TRIM … FROM
SELECT trim(BOTH 'x' FROM 'xax'), trim(LEADING 'x' FROM txt) FROM numbers
--- SUBSTRING … FROM
SELECT substring(name FROM 2 FOR 3) FROM people
--- the whole path of a table in a column
SELECT people.id, people.name FROM people WHERE people.boss IS NULL
--- names in Unicode
SELECT `größe` FROM (SELECT id AS `größe` FROM people)
--- a semicolon in a text
SELECT ';', id FROM people
--- a column called like a clause
SELECT n AS limit, x AS window FROM numbers WHERE n = 1
--- dots with blanks
SELECT p . id FROM people AS p
--- numbers of every kind
SELECT 1, 1L, 1.5, 1e2, 1.5D, 2BD, -3, .5, id FROM people
--- many lines
SELECT
  c.name,
  count(*) AS orders,
  sum(o.amount) AS total
FROM
  customers AS c
  INNER JOIN orders AS o
    ON o.customer = c.id
WHERE
  o.status <> 'void'
  AND o.day >= '2024-01-01'
GROUP BY
  c.name
HAVING
  count(*) >= 1
