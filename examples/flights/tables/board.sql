-- The board that travellers see: a line for each flight, with what is known of it by now.
CREATE OR ALTER MATERIALIZED TABLE airport.board (PRIMARY KEY (`month`, `day`, carrier, flight, origin) NOT ENFORCED)
COMMENT 'a line for each flight'
WITH ('bucket' = '1')
FRESHNESS = INTERVAL '1' HOUR
REFRESH_MODE = FULL
AS SELECT
  `month`, `day`, carrier, flight, origin, dest,
  CASE WHEN dep_time IS NULL THEN 'due' WHEN arr_delay IS NULL THEN 'left' ELSE 'arrived' END AS state,
  coalesce(arr_delay, dep_delay) AS delay
FROM airport.flights
