-- What the airport's office asks: how late is each carrier?
CREATE OR ALTER MATERIALIZED TABLE airport.carriers (PRIMARY KEY (carrier) NOT ENFORCED)
COMMENT 'flights and delays of each carrier'
WITH ('bucket' = '1')
FRESHNESS = INTERVAL '1' HOUR
REFRESH_MODE = FULL
AS SELECT
  carrier,
  count(*) AS flights,
  count(CASE WHEN state = 'arrived' THEN 1 END) AS arrived,
  count(delay) AS known,
  sum(delay) AS minutes
FROM airport.board
GROUP BY carrier
