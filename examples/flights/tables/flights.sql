-- What the airlines send: a flight is planned, leaves and arrives, or it is taken off the plan.
CREATE DATABASE IF NOT EXISTS airport;

CREATE TABLE IF NOT EXISTS airport.flights (
  `year` INT, `month` INT, `day` INT, carrier STRING, flight INT, origin STRING, dest STRING, tailnum STRING, distance INT,
  time_hour TIMESTAMP_LTZ(6), sched_dep_time INT, sched_arr_time INT, dep_time INT, dep_delay INT, arr_time INT, arr_delay INT,
  air_time INT, status STRING,
  PRIMARY KEY (`month`, `day`, carrier, flight, origin) NOT ENFORCED
)
COMMENT 'flights that leave New York'
WITH ('bucket' = '1');
