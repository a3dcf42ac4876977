"""Lists calls of functions of texts, numbers, bits, bytes, addresses, dates and times with arguments at the edges of their types.

It goes on where :mod:`tests.support.sql.edges` ends; what a line means is said there.
"""

WRITTEN = {
    "BYTES": (
        "CAST(NULL AS BINARY)", "X''", "X'61'", "X'C3A9'", "X'80'", "X'61C262'", "X'F09F9880'", "X'00FF7F'", "X'0001020304'",
        "X'EDA080'", "X'C080'", "X'E282'", "X'F4908080'",
    ),
    "FEW_BYTES": ("CAST(NULL AS BINARY)", "X''", "X'61'", "X'C3A9'", "X'00'"),
    "CASES": (
        "CAST(NULL AS STRING)", "''", "'hello wORLD  two'", "'a-b c_d'", "'ÉCOLE été'", "'\U0001f600x y'", "' x '", "'12 a3b'",
        "'Robert'", "'Tymczak'", "'Pfister'", "'Ashcraft'", "'o''Hara'", "'-abc'", "'ñandu'",
    ),
    "URLS": (
        "CAST(NULL AS STRING)", "''", "'http://user:pw@host.org:8080/p/a?q=1&r=2&q=3#frag'", "'https://a.b/c%20d?x=%41&y'",
        "'ftp://h'", "'mailto:me@x.org'", "'//host/path'", "'/only/path?x=1'", "'http://[::1]:80/a'", "'inva lid://x'",
        "'http://h?x'", "'http://h/?=1&a='", "'http://h_o.st/x'", "'file:///tmp/x'",
    ),
    "PARTS": ("'HOST'", "'PATH'", "'QUERY'", "'REF'", "'PROTOCOL'", "'FILE'", "'AUTHORITY'", "'USERINFO'", "'host'", "''"),
    "ENCODED": (
        "CAST(NULL AS STRING)", "''", "'a b+c'", "'a%20b'", "'%C3%A9'", "'x*-._~'", "'é/ü?\U0001f600'", "'%'", "'%4'", "'%zz'",
        "'+%2B'", "'%80'",
    ),
    "LISTED": ("CAST(NULL AS STRING)", "''", "'a,b,c'", "',a'", "'b,,ab'", "'é,a'", "'ab'", "','"),
    "BASE64": (
        "CAST(NULL AS STRING)", "''", "'YQ=='", "'YWI='", "'YWJj'", "'YQ'", "'YWI'", "'Y'", "'Y W J j'", "'U3BhcmsgU1FM'",
        "'4oKs'", "'*'", "'YQ==='", "'YQ=a'",
    ),
    "DIGITS": (
        "CAST(NULL AS STRING)", "''", "'0'", "'79927398713'", "'79927398714'", "'12a'", "' 18'", "'-18'", "'18'", "'٣'", "'00'",
    ),
    "HEX": ("CAST(NULL AS STRING)", "''", "'0'", "'A'", "'0a'", "'FFF'", "'g'", "'C3A9'", "' 41'"),
    "BASED": (
        "CAST(NULL AS STRING)", "''", "'100'", "'-10'", "'ff'", "'FFFFFFFFFFFFFFFFFF'", "'zz'", "' 11 '", "'9.5'", "'1é'", "'+7'",
        "'9223372036854775808'", "'-1'", "'x'", "'-x'", "'0'", "'18446744073709551616'",
    ),
    "BASES": ("10", "16", "2", "36", "-10", "-2", "37", "1", "0"),
    "RADIANS": (
        "CAST(NULL AS DOUBLE)", "0.0D", "-0.0D", "1.0D", "-1.0D", "0.5D", "-0.3D", "2.5D", "1e-20D", "1e10D", "-710.4D", "1e300D",
        "double('NaN')", "double('Infinity')", "double('-Infinity')",
    ),
    "HALVES": (
        "CAST(NULL AS DOUBLE)", "0.5D", "1.5D", "2.5D", "-0.5D", "-1.5D", "-0.0D", "0.125D", "2.675D", "1e300D",
        "4503599627370497.5D", "double('NaN')", "double('Infinity')", "25.0D", "-35.0D",
    ),
    "CENTS": ("CAST(NULL AS DECIMAL(5, 3))", "2.675BD", "-2.665BD", "0.000BD", "12.345BD", "12.355BD", "-0.500BD"),
    "FACTORS": ("CAST(NULL AS INT)", "0", "1", "5", "20", "21", "-1"),
    "PLACES": ("0", "1", "31", "32", "33", "63", "64", "-1", "CAST(NULL AS INT)"),
    "BITS": ("0", "1", "7"),
    "SECONDS": (
        "CAST(NULL AS BIGINT)", "0L", "-1L", "1230219000L", "253402300799L", "-62135596800L", "9223372036854L",
        "9223372036854775807L",
    ),
    "PARTS_OF_SECONDS": ("CAST(NULL AS DOUBLE)", "0.5D", "-0.0000014D", "1230219000.123456D", "double('NaN')", "1e20D"),
    "EXACT_SECONDS": ("CAST(NULL AS DECIMAL(20, 9))", "1.5BD", "-1.000001BD", "1230219000.123456789BD"),
    "COUNTED": (
        "CAST(NULL AS BIGINT)", "0L", "1L", "-1L", "1230219000123L", "-1230219000123L", "86399999L", "86400000L",
        "9223372036854775807L",
    ),
    "LATE": (
        "CAST(NULL AS TIMESTAMP)", "TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP '1970-01-01 00:00:00'",
        "TIMESTAMP '2008-12-25 15:30:00.123456'", "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.5'",
        "TIMESTAMP '1960-02-29 12:00:00.000001'",
    ),
    "LOCAL": (
        "CAST(NULL AS TIMESTAMP_NTZ)", "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ '2021-12-06 00:00:00'",
        "TIMESTAMP_NTZ '2021-03-28 02:30:00'", "TIMESTAMP_NTZ '2021-10-31 02:30:00'", "TIMESTAMP_NTZ '2024-02-29 23:59:59.5'",
    ),
    "ZONES": ("'UTC'", "'Europe/Brussels'", "'America/Los_Angeles'"),
    "CLOCK": (
        "CAST(NULL AS TIME)", "TIME '00:00:00'", "TIME '09:32:05.359'", "TIME '23:59:59.999999'", "TIME '12:00:00'",
        "TIME '14:30:00.5'",
    ),
    "UNITS": ("'HOUR'", "'MINUTE'", "'SECOND'", "'MILLISECOND'", "'MICROSECOND'", "'hour'", "'x'"),
    "TIMED": ("'00:12:00'", "'12:10:05.999999'", "'24:00:00'", "''", "'x'", "'1:2:3'", "'12:10'", "CAST(NULL AS STRING)"),
    "YEARS": ("2014", "0", "-1", "9999", "10000", "CAST(NULL AS INT)"),
    "MONTHS": ("1", "2", "13", "0"),
    "DAYS": ("1", "29", "30"),
    "HOURS": ("0", "23", "24"),
    "DECIMAL_SECONDS": ("0", "45.887", "59.999999", "60", "60.5", "-1"),
    "DAY_NAMES": ("'TU'", "'tue'", "'Tuesday'", "'x'", "''", "'Mon'", "'SA'", "CAST(NULL AS STRING)"),
    "PATTERN": ("'a'", "''", "'[a-z]+'", "'(a)|(b)'", "'\\\\w'", "'S.*k'"),
    "NUMBER_FORMATS": (
        "'454'", "'454.00'", "'$78.12'", "'12,454'", "'-12,454.8'", "'12,454.8-'", "''", "' 454 '", "CAST(NULL AS STRING)",
    ),
    "FORMATTED": (
        "'<$012,345.6>'", "'-$099,990'", "'+$000,000.00'", "'1,234.5-'", "'12 34'", "' 1 , 2 '", "'.5'", "'1.'", "'-'",
        "'1,234,567.89'", "'0,'", "'0,1'", "'<1>'", "'$1'", "'1-'", "'\t0,7'",
    ),
    "TINY": ("CAST(0.000001 AS DECIMAL(10, 7))", "CAST(0 AS DECIMAL(6, 6))", "CAST(-1.5 AS DECIMAL(9, 8))", "0.0000001BD"),
    "BASE32": ("CAST(NULL AS STRING)", "''", "'ME======'", "'MFRA===='", "'MFRGG==='", "'MFRGGZA='", "'MFRGGZDF'"),
    "FINITE": ("CAST(NULL AS DOUBLE)", "0.0D", "-0.0D", "1.5D", "-0.25D", "1234.567D", "99999.0D"),
    "LIMITS": ("-1", "0", "1", "2", "3"),
    "CHARSETS": ("'UTF-8'", "'utf-8'", "'US-ASCII'", "'ISO-8859-1'", "'UTF-16'", "'UTF-16BE'", "'UTF-16LE'", "'UTF-32'", "'x'"),
}  # fmt: skip

CALLS = r"""
acos({0}) | RADIANS
acos({0}) | INT
acos({0}) | STRING
acosh({0}) | RADIANS
asin({0}) | RADIANS
asinh({0}) | RADIANS
atan({0}) | RADIANS
atanh({0}) | RADIANS
cbrt({0}) | RADIANS
cbrt({0}) | BIGINT
cosh({0}) | RADIANS
cot({0}) | RADIANS
csc({0}) | RADIANS
sec({0}) | RADIANS
sinh({0}) | RADIANS
tanh({0}) | RADIANS
sin({0}) | RADIANS
cos({0}) | RADIANS
tan({0}) | RADIANS
expm1({0}) | RADIANS
log1p({0}) | RADIANS
exp({0}) | RADIANS
exp({0}) | DECIMAL(10, 2)
ln({0}) | RADIANS
hypot({0}, {1}) | DOUBLE; DOUBLE
hypot({0}, {1}) | INT; DECIMAL(10, 2)
rint({0}) | HALVES
rint({0}) | DECIMAL(10, 2)
bround({0}) | HALVES
bround({0}, 1) | HALVES
bround({0}, -1) | HALVES
bround({0}, 2) | CENTS
bround({0}, 1) | CENTS
bround({0}) | CENTS
bround({0}, -1) | INT
bround({0}, 1) | INT
bround({0}, -1) | BIGINT
factorial({0}) | FACTORS
factorial({0}) | TINYINT
e: e() * {0} | INT
negative({0}) | INT
negative({0}) | DOUBLE
negative({0}) | DECIMAL(10, 2)
negative({0}) | TINYINT
negative({0}) | NUMBERED
positive({0}) | INT
positive({0}) | DOUBLE
positive({0}) | NUMBERED
bin({0}) | INT
bin({0}) | BIGINT
bin({0}) | DOUBLE
bin({0}) | NUMBERED
conv({0}, {1}, 10) | BASED; BASES
conv({0}, 10, {1}) | BASED; BASES
conv({0}, 16, -10) | BASED
conv({0}, 10, 16) | BIGINT
width_bucket({0}, 0.2D, 10.6D, {1}) | DOUBLE; SMALL
width_bucket({0}, 10, 0, 5) | INT
width_bucket({0}, {1}, 1, 3) | DOUBLE; DOUBLE
try_add({0}, {1}) | INT; INT
try_add({0}, {1}) | BIGINT; BIGINT
try_add({0}, {1}) | TINYINT; TINYINT
try_add({0}, {1}) | DOUBLE; INT
try_add({0}, {1}) | DECIMAL(38, 18); DECIMAL(38, 18)
try_add({0}, {1}) | DECIMAL(10, 2); INT
try_add({0}, {1}) | DATE; SMALL
try_subtract({0}, {1}) | INT; INT
try_subtract({0}, {1}) | BIGINT; BIGINT
try_subtract({0}, {1}) | DOUBLE; DOUBLE
try_subtract({0}, {1}) | DATE; SMALL
try_multiply({0}, {1}) | INT; INT
try_multiply({0}, {1}) | BIGINT; BIGINT
try_multiply({0}, {1}) | DOUBLE; DOUBLE
try_multiply({0}, {1}) | DECIMAL(38, 18); DECIMAL(38, 18)
try_divide({0}, {1}) | INT; INT
try_divide({0}, {1}) | DOUBLE; DOUBLE
try_divide({0}, {1}) | DECIMAL(10, 2); DECIMAL(10, 2)
try_mod({0}, {1}) | INT; INT
try_mod({0}, {1}) | BIGINT; BIGINT
try_mod({0}, {1}) | DOUBLE; DOUBLE
try_mod({0}, {1}) | DECIMAL(10, 2); DECIMAL(10, 2)
shiftrightunsigned({0}, {1}) | INT; PLACES
shiftrightunsigned({0}, {1}) | BIGINT; PLACES
shiftleft({0}, {1}) | INT; PLACES
shiftright({0}, {1}) | BIGINT; PLACES
shiftright({0}, {1}) | TINYINT; PLACES
bit_get({0}, {1}) | INT; BITS
bit_get({0}, {1}) | BIGINT; PLACES
getbit({0}, {1}) | TINYINT; BITS
bitmap_bit_position({0}) | BIGINT
bitmap_bit_position({0}) | COUNTED
bitmap_bucket_number({0}) | BIGINT
bitmap_bucket_number({0}) | COUNTED
bitmap_count({0}) | BYTES
bit_length({0}) | STRING
bit_length({0}) | BYTES
octet_length({0}) | STRING
octet_length({0}) | BYTES
octet_length({0}) | INT
length({0}) | BYTES
char_length({0}) | INT
len({0}) | BYTES
ascii({0}) | INT
ascii({0}) | BYTES
btrim({0}) | STRING
btrim({0}, {1}) | STRING; SHORT
btrim({0}) | BYTES
btrim({0}, {1}) | BYTES; FEW_BYTES
ltrim({0}) | CASES
hex({0}) | BYTES
hex({0}) | NUMBERED
unhex({0}) | HEX
base64({0}) | STRING
base64({0}) | BYTES
unbase64({0}) | BASE64
hex: hex(unbase64({0})) | BASE64
to_base32({0}) | STRING
to_base32({0}) | BYTES
initcap({0}) | CASES
soundex({0}) | CASES
soundex({0}) | STRING
space({0}) | SMALL
space({0}) | DIGITS
substring_index({0}, {1}, 1) | STRING; SHORT
substring_index({0}, '.', {1}) | STRING; SMALL
substring_index({0}, {1}, -1) | STRING; SHORT
substring_index({0}, {1}, 2) | LISTED; SHORT
levenshtein({0}, {1}) | CASES; SHORT
levenshtein({0}, {1}, 2) | STRING; SHORT
levenshtein({0}, 'kitten', {1}) | CASES; SMALL
jaro_winkler_similarity({0}, {1}) | CASES; SHORT
jaro_winkler_similarity({0}, 'martha') | CASES
elt({0}, 'a', 'b') | POSITIVE
elt({0}, 'a', 'b') | SMALL
elt({0}, 'a', 1) | SMALL
elt(1, {0}, {1}) | STRING; BYTES
find_in_set({0}, {1}) | SHORT; LISTED
find_in_set('ab', {0}) | LISTED
split({0}, ',', {1}) | LISTED; LIMITS
split({0}, 'a', {1}) | STRING; LIMITS
split({0}, '', {1}) | STRING; LIMITS
split_part({0}, ',', {1}) | LISTED; SMALL
mask({0}) | CASES
mask({0}, 'Q', 'q', 'd', 'o') | CASES
mask({0}, NULL, 'é', NULL, '*') | CASES
mask({0}, 'Q', NULL) | STRING
luhn_check({0}) | DIGITS
quote({0}) | CASES
quote({0}) | STRING
translate({0}, 'ab\U0001f600', 'x') | STRING
overlay({0} PLACING {1} FROM 2) | BYTES; FEW_BYTES
overlay({0} PLACING {1} FROM 1 FOR 0) | BYTES; FEW_BYTES
overlay({0}, 'X', {1}, 2) | STRING; SMALL
left({0}, {1}) | BYTES; SMALL
right({0}, {1}) | STRING; SMALL
substring({0}, {1}) | BYTES; SMALL
substring({0}, {1}, 2) | BYTES; SMALL
lpad({0}, {1}) | BYTES; SMALL
lpad({0}, {1}, X'0102') | BYTES; SMALL
rpad({0}, {1}) | BYTES; SMALL
rpad({0}, {1}, X'') | BYTES; SMALL
startswith({0}, {1}) | BYTES; FEW_BYTES
endswith({0}, {1}) | BYTES; FEW_BYTES
contains({0}, {1}) | BYTES; FEW_BYTES
contains({0}, NULL) | STRING
reverse({0}) | BYTES
concat({0}, {1}) | FEW_BYTES; BYTES
instr({0}, {1}, 2) | STRING; SHORT
instr({0}, 'a', {1}) | STRING; SMALL
instr({0}, 'a', {1}, 2) | LISTED; SMALL
locate('a', {0}, {1}) | STRING; SMALL
position({1}, {0}, 2) | STRING; SHORT
is_valid_utf8({0}) | BYTES
is_valid_utf8({0}) | STRING
make_valid_utf8({0}) | BYTES
make_valid_utf8({0}) | STRING
validate_utf8({0}) | BYTES
try_validate_utf8({0}) | BYTES
encode({0}, {1}) | STRING; CHARSETS
decode({0}, {1}) | BYTES; CHARSETS
decode({0}, 'UTF-8') | STRING
to_binary({0}, 'utf-8') | STRING
to_binary({0}, 'hex') | HEX
to_binary({0}, 'base64') | BASE64
to_binary({0}) | HEX
try_to_binary({0}, 'utf-8') | STRING
try_to_binary({0}, 'hex') | HEX
try_to_binary({0}, 'base64') | BASE64
sentences({0}) | CASES
format_number({0}, 2) | DOUBLE
format_number({0}, 0) | INT
format_number({0}, {1}) | BIGINT; SMALL
format_number({0}, 3) | DECIMAL(10, 2)
format_number({0}, 1) | HALVES
format_number({0}, '#,###.##') | DOUBLE
format_string('%s|%s', {0}, {1}) | STRING; INT
format_string('%d %05d %x', {0}, {0}, {0}) | INT
format_string('%.2f', {0}) | DOUBLE
printf('%-5s|%5s', {0}, {0}) | STRING
to_number({0}, '999') | NUMBER_FORMATS
to_number({0}, '$99.99') | NUMBER_FORMATS
to_number({0}, '99,999') | NUMBER_FORMATS
to_number({0}, '99,999.9S') | NUMBER_FORMATS
to_number({0}, 'S99,999.9') | NUMBER_FORMATS
try_to_number({0}, '999.99') | NUMBER_FORMATS
try_to_number({0}, 'MI999') | NUMBER_FORMATS
try_to_number({0}, 'S$099G990D99PR') | FORMATTED
try_to_number({0}, '9,999,999.99MI') | FORMATTED
try_to_number({0}, '.99') | FORMATTED
to_number({0}, '0,9.') | FORMATTED
try_to_number({0}, '9,9.9,9') | FORMATTED
to_char({0}, '999') | INT
to_char({0}, '000D00') | DECIMAL(10, 2)
to_char({0}, 'S9,999,999.99') | DECIMAL(10, 2)
to_char({0}, '$99.99PR') | DECIMAL(10, 2)
to_char({0}, 'S$9,999D9MI') | DECIMAL(10, 2)
to_json(named_struct('x', {0}, 'y', array({0}, NULL), 'z', NULL)) | BYTES
to_json(named_struct('x', {0}, 'y', array({0}, NULL), 'z', NULL)) | DECIMAL(10, 2)
to_json(named_struct('x', {0}, 'y', array({0}, NULL), 'z', NULL)) | DECIMAL(38, 18)
to_json(named_struct('x', {0}, 'y', array({0}, NULL), 'z', NULL)) | TINY
to_json(map('k', {0})) | BYTES
format_number({0}, 5) | DOUBLE
format_number({0}, 5) | HALVES
conv({0}, 16, 36) | BASED
conv({0}, 2, 16) | BASED
from_base32({0}) | BASE32
to_char({0}, 'MI0,9.') | DECIMAL(10, 2)
to_char({0}, '9,000.000S') | DECIMAL(10, 2)
to_char({0}, '.9PR') | DECIMAL(10, 2)
to_char({0}, 'S99999999999999999999.999999999999999999') | DECIMAL(38, 18)
to_char({0}, '9,999.99') | SMALLINT
to_char({0}, '9,999.99') | FINITE
to_char({0}, '9,999.99') | NUMBERED
to_varchar({0}, 'MI9G999PR') | SMALLINT
to_char({0}, '9$9') | SMALLINT
to_char({0}, 'base64') | BYTES
to_char({0}, 'hex') | BYTES
to_char({0}, 'utf-8') | BYTES
to_char({0}, 'yyyy-MM-dd') | DATE
to_varchar({0}, '999.9MI') | DECIMAL(10, 2)
parse_url({0}, {1}) | URLS; PARTS
parse_url({0}, 'QUERY', {1}) | URLS; SHORT
parse_url({0}, 'QUERY', 'q') | URLS
try_parse_url({0}, {1}) | URLS; PARTS
try_parse_url({0}, 'QUERY', 'q') | URLS
url_encode({0}) | ENCODED
url_decode({0}) | ENCODED
try_url_decode({0}) | ENCODED
regexp_extract_all({0}, '(a)|(b)', 1) | STRING
regexp_extract_all({0}, '[a-z]', 0) | CASES
regexp_extract_all({0}, '(.)(.)', 2) | CASES
regexp_count({0}, {1}) | STRING; PATTERN
regexp_instr({0}, {1}) | STRING; PATTERN
regexp_substr({0}, {1}) | STRING; PATTERN
regexp_replace({0}, 'a', 'b', {1}) | STRING; POSITIVE
regexp_replace({0}, '[a-z]+', '<$0>', {1}) | CASES; POSITIVE
regexp({0}, '^a') | STRING
regexp_like({0}, {1}) | CASES; PATTERN
timestamp_seconds({0}) | SECONDS
timestamp_seconds({0}) | PARTS_OF_SECONDS
timestamp_seconds({0}) | EXACT_SECONDS
timestamp_seconds({0}) | INT
timestamp_millis({0}) | COUNTED
timestamp_micros({0}) | COUNTED
unix_seconds({0}) | LATE
unix_millis({0}) | LATE
unix_micros({0}) | LATE
unix_seconds({0}) | DATED
unix_date({0}) | DATED
from_unixtime({0}) | SECONDS
from_unixtime({0}, 'yyyy/MM/dd') | SECONDS
unix_timestamp({0}, 'yyyy-MM-dd') | DATED
to_unix_timestamp({0}, 'yyyy-MM-dd') | DATED
make_timestamp({0}, {1}, 29, 23, 59, 1.5) | YEARS; MONTHS
make_timestamp(2024, 2, {0}, {1}, 0, 0) | DAYS; HOURS
make_timestamp(2024, 2, 28, 6, 30, {0}) | DECIMAL_SECONDS
make_timestamp_ntz(2024, 2, {0}, {1}, 0, 0) | DAYS; HOURS
make_timestamp_ltz(2024, 2, {0}, {1}, 0, 0) | DAYS; HOURS
make_timestamp(2024, 7, 28, 6, 30, 1, {0}) | ZONES
make_timestamp(2024, 3, 31, 2, 30, 1, {0}) | ZONES
try_make_timestamp({0}, {1}, 29, 23, 59, 1.5) | YEARS; MONTHS
try_make_timestamp(2024, 2, {0}, {1}, 0, 0) | DAYS; HOURS
try_make_timestamp(2024, 2, 28, 6, 30, {0}) | DECIMAL_SECONDS
try_make_timestamp_ntz(2024, 2, {0}, {1}, 0, 0) | DAYS; HOURS
try_make_timestamp_ltz(2024, 2, {0}, {1}, 0, 0) | DAYS; HOURS
make_timestamp({0}, {1}) | DATE; CLOCK
make_timestamp_ntz({0}, {1}) | DATE; CLOCK
make_time({0}, 30, {1}) | HOURS; DECIMAL_SECONDS
to_time({0}) | TIMED
to_time({0}, 'HH:mm:ss') | TIMED
try_to_time({0}) | TIMED
hour({0}) | CLOCK
minute({0}) | CLOCK
second({0}) | CLOCK
time_trunc({1}, {0}) | CLOCK; UNITS
time_diff({2}, {0}, {1}) | CLOCK; CLOCK; UNITS
time_to_seconds({0}) | CLOCK
time_to_millis({0}) | CLOCK
time_to_micros({0}) | CLOCK
time_from_seconds({0}) | PARTS_OF_SECONDS
time_from_seconds({0}) | SMALL
time_from_millis({0}) | COUNTED
time_from_micros({0}) | COUNTED
convert_timezone('Europe/Brussels', 'America/Los_Angeles', {0}) | LOCAL
convert_timezone({1}, {0}) | LOCAL; ZONES
date_part('YEAR', {0}) | DATE
date_part('SECONDS', {0}) | LATE
date_part('week', {0}) | LATE
date_part('doy', {0}) | DATE
date_part('dow', {0}) | DATE
date_part('dayofweek_iso', {0}) | DATE
date_part('yearofweek', {0}) | DATE
date_part('MINUTE', {0}) | CLOCK
date_part('SECOND', {0}) | CLOCK
extract(SECOND FROM {0}) | LATE
extract(SECOND FROM {0}) | CLOCK
extract(QUARTER FROM {0}) | DATED
extract(HOUR FROM {0}) | CLOCK
extract(DAYS FROM {0}) | DATE
date_trunc('DD', {0}) | DATED
date_trunc('MM', {0}) | DATE
date_trunc('x', {0}) | LATE
date_trunc('second', {0}) | LATE
date_trunc('millisecond', {0}) | LATE
date_trunc('microsecond', {0}) | LATE
trunc({0}, 'MM') | DATED
trunc({0}, 'year') | DATED
trunc({0}, 'day') | DATE
trunc({0}, {1}) | DATE; UNITS
next_day({0}, {1}) | DATE; DAY_NAMES
last_day({0}) | LATE
dayname({0}) | DATED
monthname({0}) | DATED
weekday({0}) | DATED
quarter({0}) | DATED
minute({0}) | DATED
second({0}) | DATED
months_between({0}, {1}) | LATE; LATE
months_between({0}, {1}) | DATED; DATE
months_between({0}, {1}, false) | DATE; DATE
to_timestamp_ntz({0}) | DATED
to_timestamp_ltz({0}) | DATED
to_timestamp_ntz({0}, 'yyyy-MM-dd') | DATED
try_to_timestamp({0}) | DATED
try_to_timestamp({0}, 'yyyy-MM-dd') | DATED
try_to_date({0}) | DATED
try_to_date({0}, 'yyyy-MM-dd') | DATED
timestampadd(MONTH, {1}, {0}) | LATE; SMALL
timestampadd(HOUR, {1}, {0}) | LATE; SMALL
timestampadd(DAY, {1}, {0}) | DATE; SMALL
timestampdiff(SECOND, {0}, {1}) | LATE; LATE
make_dt_interval: timestamp_seconds(0) + make_dt_interval({0}, {0}, 0, {1}) | SMALL; EXACT_SECONDS
make_interval: timestamp_seconds(0) + make_interval({0}, {0}, 0, {0}) | SMALL
make_ym_interval: date_from_unix_date(30) + make_ym_interval({0}, {0}) | SMALL
ceil({0}, 1) | DOUBLE
ceil({0}, 1) | CENTS
ceil({0}, -1) | INT
floor({0}, 1) | DOUBLE
floor({0}, 1) | CENTS
floor({0}, -1) | BIGINT
abs({0}) | NUMBERED
sign({0}) | NUMBERED
nanvl({0}, {1}) | DOUBLE; INT
greatest({0}, {1}) | FLOAT; DOUBLE
pmod({0}, {1}) | SMALLINT; INT
"""

AGGREGATES = r"""
bit_and({0}) | INT; BIGINT; TINYINT
bit_or({0}) | INT; BIGINT
bit_xor({0}) | INT; BIGINT
regr_count({0}, {1}) | INT; DOUBLE
regr_avgx({0}, {1}) | INT; DOUBLE
regr_avgy({0}, {1}) | INT; DOUBLE
regr_sxx({1}, {0}) | INT; DOUBLE
regr_syy({0}, {1}) | INT; DOUBLE
regr_sxy({0}, {1}) | INT; DOUBLE
regr_r2({0}, {1}) | INT; DOUBLE
regr_slope({0}, {1}) | INT; DOUBLE
regr_intercept({0}, {1}) | INT; DOUBLE
kurtosis({0}) | INT; DOUBLE
skewness({0}) | INT; DOUBLE
std({0}) | INT; DOUBLE
mean({0}) | INT; DOUBLE; DECIMAL(10, 2)
try_sum({0}) | INT; BIGINT; DOUBLE; DECIMAL(10, 2); DECIMAL(38, 18)
try_avg({0}) | INT; BIGINT; DOUBLE; DECIMAL(10, 2); DECIMAL(38, 18)
mode({0}, true) | INT; STRING; DATE
mode() WITHIN GROUP (ORDER BY {0}) | INT; STRING; DATE; DOUBLE
percentile_cont(0.25) WITHIN GROUP (ORDER BY {0}) | INT; DOUBLE
percentile_cont(0.5) WITHIN GROUP (ORDER BY {0} DESC) | INT; DOUBLE
percentile_disc(0.25) WITHIN GROUP (ORDER BY {0}) | INT; DOUBLE; DECIMAL(10, 2)
percentile_disc(0.75) WITHIN GROUP (ORDER BY {0} DESC) | INT
percentile({0}, 0.3, {1}) | INT
percentile_approx({0}, 0.5) | INT; DOUBLE; BIGINT
approx_percentile({0}, array(0.1, 0.9)) | INT; DOUBLE
any_value({0}) | INT; STRING
any_value({0}, true) | INT; STRING
first({0}, true) | INT; STRING
first_value({0}) | INT
first_value({0}, true) | INT
last({0}, true) | INT; STRING
last_value({0}) | INT
last_value({0}) IGNORE NULLS | INT
first({0}) IGNORE NULLS | STRING
string_agg({0}) | STRING; INT
listagg({0}, ', ') | STRING
listagg({0}, ', ') WITHIN GROUP (ORDER BY {1} DESC) | STRING
bool_and({0}) | BOOLEAN
count(DISTINCT {0}, {1}) | INT
"""
