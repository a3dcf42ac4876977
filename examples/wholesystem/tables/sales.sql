-- What was sold of each item: kept fresh by the scheduler of the service.
CREATE OR ALTER MATERIALIZED TABLE shop.sales (PRIMARY KEY (item) NOT ENFORCED)
COMMENT 'what was sold of each item'
WITH ('bucket' = '1')
FRESHNESS = INTERVAL '10' SECOND
AS SELECT item, count(*) AS orders, sum(price) AS total FROM shop.orders WHERE state <> 'new' GROUP BY item
