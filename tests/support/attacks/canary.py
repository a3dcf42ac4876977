"""A secret that tests look for, and the many ways in which people spell where secrets are."""

CANARY = "c4n4ry-7f3e"

SECRETS = (
    "password",
    "PASSWORD",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "secret-key",
    "secret_key",
    "access.key",
    "accessKey",
    "access_key_id",
    "token",
    "sas",
    "credential",
    "private-key",
    "ssl.key.pem",
    "sasl.jaas.config",
    "properties.sasl.jaas.config",
    "api_key",
    "auth",
    "connection-string",
    "fs.s3a.secret.key",
    "tablestore.password",
    "log.kafka.sasl.password",
    "fields.a.password",
    # Called as nobody has thought of.
    "k",
    "opensesame",
)
URLS = (
    f"postgresql://me:{CANARY}@host:5432/db",
    f"jdbc:postgresql://me:{CANARY}@host/db",
    f"jdbc:postgresql://host/db?user=me&password={CANARY}",
    f"jdbc:postgresql://host/db?{CANARY}",
    f"postgresql://a:{CANARY}@h1:1,b:{CANARY}@h2:2/db?target_session_attrs=any",
    f"mongodb://h1,h2/db?password={CANARY}",
    f"https://{CANARY}@host/path",
    f"https://host/path?X-Amz-Signature={CANARY}",
    f"https://host/path#access_token={CANARY}",
    f"jdbc:sqlserver://host;user=me;password={CANARY}",
    f"jdbc:oracle:thin:scott/{CANARY}@//host:1521/x",
    f"mysql://me:a/{CANARY}@host/db",
    f"s3://key:{CANARY}@bucket/path",
)
