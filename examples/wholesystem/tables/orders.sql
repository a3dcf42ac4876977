-- The orders of a shop, as they are now.
CREATE DATABASE IF NOT EXISTS shop;

CREATE TABLE IF NOT EXISTS shop.orders (
  id BIGINT, item STRING, price DECIMAL(10, 2), state STRING COMMENT 'new, paid or sent',
  PRIMARY KEY (id) NOT ENFORCED
)
COMMENT 'every order, as it is now'
WITH ('bucket' = '2');
