--- text
SELECT name, length(name), lower(name), reverse(name), repeat(name, 2), concat(name, '-', name), left(name, 2), right(name, 2) FROM people
--- concat with a null is null
SELECT concat(note, '!'), note || '!', concat_ws(',', note, status) FROM orders
--- substring from zero and from the end
SELECT substring(name, 0, 2), substring(name, 2), substr(name, -2), substring(name, -2, 1), substring(name, 1, 0) FROM people
--- positions
SELECT instr(name, 'a'), locate('a', name), position('o' IN name) FROM people
--- padding and trimming
SELECT lpad(name, 5, '*'), rpad(name, 5), ltrim('  a '), rtrim(' a  '), trim(' a ') FROM people
--- replacing
SELECT replace(name, 'a', 'A'), translate(name, 'ao', 'oa') FROM people
--- initcap
SELECT initcap('hello wORLD of spark') FROM people WHERE id = 1
--- split
SELECT split('a,b,,c', ','), split(name, '') [0] FROM people WHERE id = 1
--- split_part
SELECT split_part('a.b.c', '.', 2), split_part('a.b.c', '.', -1) FROM people WHERE id = 1
--- regular expressions
SELECT regexp_replace(name, '[aeiou]', '_'), regexp_extract(name, '^(.)(.*)$', 2), name RLIKE 'o$' FROM people
--- regexp_extract without a group number
SELECT regexp_extract('100-200', '(\\d+)-(\\d+)'), regexp_extract('100-200', '(\\d+)-(\\d+)', 0) FROM people WHERE id = 1
--- regexp_replace with groups
SELECT regexp_replace('100-200', '(\\d+)-(\\d+)', '$2-$1') FROM people WHERE id = 1
--- startswith
SELECT name FROM people WHERE startswith(name, 'A') OR endswith(name, 'o') OR contains(name, 'ar')
--- ascii and chr
SELECT ascii(name), chr(65), char(66) FROM people WHERE id = 1
--- hashes
SELECT md5(name), sha2(name, 256), sha1(name) FROM people
--- crc32
SELECT crc32(name) FROM people
--- hex and base64
SELECT hex(name), hex(id), unhex('41') FROM people
--- base64
SELECT base64(name) FROM people
--- rounding
SELECT round(2.5), round(-2.5), round(amount, 1), round(amount), ceil(amount), floor(amount), round(125, -1) FROM orders WHERE id < 4
--- bround
SELECT bround(2.5, 0) FROM people
--- numbers
SELECT abs(-2), sign(-3.0), sqrt(16), power(2, 10), exp(0), ln(1), log10(100), log2(8), log(2, 8), pmod(-7, 3), mod(-7, 3), -7 % 3, greatest(1, 3, 2), least(2, 1) FROM people WHERE id = 1
--- greatest passes over nulls
SELECT greatest(qty, 3), least(qty, 3) FROM orders
--- whole numbers are cut towards zero
SELECT -7 DIV 2, 7 DIV -2, -7 % 2 FROM people WHERE id = 1
--- trigonometry
SELECT round(sin(1), 6), round(cos(1), 6), round(tan(1), 6), round(atan2(1, 2), 6), round(degrees(pi()), 3), round(radians(180), 6) FROM people WHERE id = 1
--- bits
SELECT 6 & 3, 6 | 3, 6 ^ 3, ~6, shiftleft(1, 4), shiftright(16, 2), bit_count(7) FROM people WHERE id = 1
--- parts of a date
SELECT year(day), quarter(day), month(day), day(day), dayofmonth(day), dayofyear(day), dayofweek(day), weekday(day), weekofyear(day) FROM orders
--- parts of a timestamp
SELECT year(at), month(at), hour(at), minute(at), second(at), date(at), to_date(at) FROM orders
--- truncated dates
SELECT trunc(day, 'MM'), trunc(day, 'YEAR'), trunc(day, 'week'), trunc(day, 'quarter') FROM orders
--- truncated timestamps
SELECT date_trunc('DAY', at), date_trunc('HOUR', at), date_trunc('month', at) FROM orders
--- months
SELECT add_months(day, 1), add_months(DATE '2024-01-31', 1), last_day(day), months_between(DATE '2024-03-31', DATE '2024-02-29') FROM orders WHERE id < 5
--- next_day
SELECT next_day(day, 'MON'), next_day(day, 'Sunday') FROM orders WHERE id < 5
--- formatted dates
SELECT date_format(day, 'yyyy/MM/dd'), date_format(at, 'yyyy-MM-dd HH:mm:ss'), date_format(day, 'EEE d MMM yy') FROM orders WHERE id < 5
--- parsed dates
SELECT to_date('2024-03-01'), to_date('01.03.2024', 'dd.MM.yyyy'), CAST('2024-03-01' AS DATE), to_timestamp('2024-03-01 10:11:12', 'yyyy-MM-dd HH:mm:ss') FROM people WHERE id = 1
--- make_date
SELECT make_date(2024, 2, 29), date_from_unix_date(1), unix_date(DATE '1970-01-03') FROM people WHERE id = 1
--- seconds
SELECT unix_timestamp(TIMESTAMP '1970-01-02 00:00:00 UTC'), unix_timestamp('1970-01-01 00:01:00') FROM people WHERE id = 1
--- timestamps of numbers
SELECT timestamp_seconds(60), unix_millis(TIMESTAMP '1970-01-01 00:00:01 UTC') FROM people WHERE id = 1
--- a difference of timestamps
SELECT timestampdiff(HOUR, TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 01:30:00'), datediff(DAY, DATE '2024-01-01', DATE '2024-01-05') FROM people WHERE id = 1
--- dayname
SELECT dayname(day), monthname(day) FROM orders WHERE id < 4
--- json
SELECT get_json_object('{"a": {"b": 2}}', '$.a.b'), get_json_object('{"a": "x"}', '$.a') FROM people WHERE id = 1
--- to_json
SELECT to_json(named_struct('a', id, 'b', name)) FROM people
--- sums of floats and decimals
SELECT sum(amount), avg(amount), avg(qty), sum(qty), sum(score) FROM orders, customers WHERE score < 10
--- counts of nothing
SELECT count(note), count(DISTINCT note), count(1), count(NULL) FROM orders
--- approx_count_distinct
SELECT approx_count_distinct(status) FROM orders
--- typeof
SELECT typeof(id) FROM people WHERE id = 1
--- patterns with look-around
SELECT name FROM people WHERE name RLIKE '^(?!A)'
--- patterns with a back reference
SELECT regexp_replace(name, '(.)\\1', 'x') FROM people
--- a quotient by zero is an error
SELECT id / (id - id) FROM people
--- a float as text
SELECT CAST(x AS STRING) FROM numbers
--- quotients and averages of decimals
SELECT sum(amount) / count(*), avg(amount * 2), avg(amount) OVER (PARTITION BY status), amount / qty FROM orders WHERE qty <> 0 GROUP BY amount, qty, status
--- truncated by a cast behind an alias
SELECT CAST(q AS INT) FROM (SELECT amount / 2 AS q FROM orders)
--- xxhash64
SELECT xxhash64(id) FROM people
--- levenshtein
SELECT levenshtein('kitten', 'sitting') FROM people WHERE id = 1
--- format_number
SELECT format_number(1234.5, 2), format_string('%s-%d', name, id) FROM people WHERE id = 1
--- isnull
SELECT isnull(note), isnotnull(note), isnan(1.0D) FROM orders
--- overlay
SELECT overlay('Spark' PLACING '_' FROM 3) FROM people WHERE id = 1
--- conv
SELECT conv('ff', 16, 10) FROM people WHERE id = 1
--- substring_index
SELECT substring_index('a.b.c', '.', 2) FROM people WHERE id = 1
