"""What is a secret by name, by content, and what is masked inside other files.

The strings are put together here, so that this file does not look like what it tests.
"""

from __future__ import annotations

import random
import string

from hypothesis import given
from hypothesis import strategies as st

from codeqa.parsing import parse_file
from codeqa.repository.classify import classify
from codeqa.repository.secrets import (
    is_secret_content,
    is_secret_name,
    mask_diff,
    mask_secret_bytes,
    mask_secrets,
)
from codeqa.types import Skipped

RNG = random.Random(7)


def mask(text: str) -> tuple[str, int]:
    """`text` with its secrets masked, and how many there were."""
    masked, count = mask_secret_bytes(text.encode())
    assert mask_secrets(text) == masked.decode()
    return masked.decode(), count


def letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(RNG.choices(alphabet, k=count - 2)) + "7Q"


def hexadecimal(count: int) -> str:
    return "".join(RNG.choices("0123456789abcdef", k=count))


def upper(count: int) -> str:
    return letters(count, string.ascii_uppercase + string.digits)


PEM_BODY = "\n".join(letters(64) for _ in range(12))


def pem(kind: str = "RSA ", body: str = PEM_BODY) -> str:
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


JWT = ".".join(("ey" + "J" + letters(20), "ey" + "J" + letters(60), letters(43)))
TOKENS = {
    "AWS key id": "AK" + "IA" + upper(16),
    "AWS temporary key id": "AS" + "IA" + upper(16),
    "GitHub token": "gh" + "p_" + letters(36),
    "GitHub server token": "gh" + "s_" + letters(36),
    "GitHub fine-grained token": "github" + "_pat_" + letters(22) + "_" + letters(59),
    "GitLab token": "glpat" + "-" + letters(20),
    "Slack bot token": "xox" + "b-123456789012-1234567890123-" + letters(24),
    "Google key": "AI" + "za" + letters(35),
    "Stripe key": "sk" + "_live_" + letters(24),
    "Stripe restricted key": "rk" + "_live_" + letters(24),
    "OpenAI key": "sk" + "-" + letters(48),
    "OpenAI project key": "sk" + "-proj-" + letters(60) + "_" + letters(20),
    "Anthropic key": "sk" + "-ant-api03-" + letters(80),
    "OpenRouter key": "sk" + "-or-v1-" + hexadecimal(64),
    "Groq key": "gs" + "k_" + letters(52),
    "Cerebras key": "cs" + "k-" + hexadecimal(48),
    "Jina key": "ji" + "na_" + letters(60),
    "xAI key": "xa" + "i-" + letters(80),
    "Replicate token": "r" + "8_" + letters(37),
    "npm token": "npm" + "_" + letters(36),
    "PyPI token": "pypi-" + "AgE" + letters(80),
    "Hugging Face token": "hf" + "_" + "".join(RNG.choices(string.ascii_letters, k=34)),
    "SendGrid key": "SG" + "." + letters(22) + "." + letters(43),
    "JSON web token": JWT,
    "Slack app token": "xapp" + "-1-" + upper(11) + "-123456789012-" + hexadecimal(64),
    "Google client secret": "GOCSPX" + "-" + letters(28),
    "Stripe webhook secret": "whsec" + "_" + letters(32),
    "Docker token": "dckr" + "_pat_" + letters(27),
    "RubyGems key": "rubygems" + "_" + hexadecimal(48),
    "DigitalOcean token": "dop" + "_v1_" + hexadecimal(64),
    "Databricks token": "dapi" + hexadecimal(32),
    "Vault token": "hvs" + "." + letters(95),
    "Atlassian token": "ATATT3" + "xFfGF0" + letters(180),
    "Shopify token": "shpat" + "_" + hexadecimal(32),
    "Linear key": "lin" + "_api_" + letters(40),
    "Notion token": "ntn" + "_12345678901" + letters(35),
    "Grafana token": "glsa" + "_" + letters(32) + "_" + hexadecimal(8),
    "New Relic key": "NRAK" + "-" + upper(27),
    "Pulumi token": "pul" + "-" + hexadecimal(40),
    "Mailgun key": "key" + "-" + hexadecimal(32),
    "Twilio key": "SK" + hexadecimal(32),
    "Telegram token": "123456789:" + "AA" + letters(33),
    "Discord token": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + letters(27),
    "Azure client secret": letters(3)[:3] + "8Q~" + letters(34),
}
PARTS = {
    "Slack hook": ("hooks.slack.com/services/", f"T{upper(8)}/B{upper(9)}/{letters(24)}", ""),
    "Azure account key": ("AccountName=shop;AccountKey=", letters(86) + "==", ";Endpoint=x"),
    "npm _auth": ("//npm.example/:_auth=", "ZGVwbG95OnMzY3JldC1QYXNz", ""),
    "npm _authToken": ("//npm.example/:_authToken=", letters(36), ""),
    "Twilio token": ('TWILIO_AUTH_TOKEN="', hexadecimal(32), '"'),
    "Sentry DSN": ("https://", hexadecimal(32), "@o4501.ingest.example/4502"),
    "Azure key in JSON": ('"AccountKey": "', letters(86) + "==", '"'),
    "Telegram address": ("https://api.telegram.org/bot", "123456789:AA" + letters(33), "/getMe"),
    "Discord hook": ("https://discord.com/api/webhooks/", f"{10**17}/{letters(68)}", ""),
    "old Sentry DSN": ("https://", f"{hexadecimal(32)}:{hexadecimal(32)}", "@sentry.example/45"),
    "encoded password": ("postgres://app:", "%23uperS3cret9x", "@db.example/shop"),
    "address in JSON": (r"postgres:\/\/app:", "kX8v!29Lq", r"@db.example\/shop"),
    "raw @ and #": ("postgres://app:", "p@ss#w0rd?9xQ", "@db.example/shop"),
    "name of a branch": ("postgres-url-", "gh" + "p_" + letters(36), ""),
    "PostgreSQL": ("postgresql://app:", "kX8v!29Lq", "@db.example:5432/shop"),
    "MySQL": ("mysql+pymysql://root:", "Sommer2024!", "@10.0.0.7/shop"),
    "MongoDB": ("mongodb+srv://app:", "qT7-zz.9Kd", "@cluster0.example.net/?retryWrites=true"),
    "Redis": ("redis://:", letters(24), "@cache.example:6379/0"),
    "AMQP": ("amqps://shop:", "correcthorsebattery", "@mq.example/%2Fshop"),
    "proxy": ("http://build:", "w1nt3r%40home", "@proxy.example:3128"),
    "git over https": ("https://oauth2:", letters(30), "@git.example/shop.git"),
    "SQL Server": ("Server=tcp:db.example;User ID=sa;Password=", "Tr0ub4dor", ";Encrypt=true"),
    "JDBC": ("jdbc:postgresql://db.example/shop?user=app&password=", letters(14), ""),
}
"""Of what only a part is masked: before, the secret, behind."""
TOKENS |= {kind: "".join(parts) for kind, parts in PARTS.items()}
MASKED = {kind: secret for kind, (_, secret, _) in PARTS.items()}


SECRET = """
    .env .env.local .env.production prod.env .envrc .netrc .pgpass id_rsa id_ed25519 server.pem
    tls.KEY store.jks a.p12 b.pfx vault.kdbx credentials credentials.json secrets.yml secrets.yaml
    service-account.json service-account-prod.json terraform.tfstate terraform.tfstate.backup
    .htpasswd .git-credentials client_secret_123.json kubeconfig .pypirc
"""
NOT_SECRET = """
    .env.example .env.sample .env.template .env.dist example.env id_rsa.pub secrets.py secrets.go
    credentials.py credentials.ts environment.ts env.py key.go keys.json monkey.js turnkey.md
    secrets.yml.example service-account.go pem.rs netrc.py .npmrc terraform.tf tfstate.go
"""


def test_a_name_says_secret_or_only_mentions_it() -> None:
    for name in SECRET.split():
        assert is_secret_name(name), name
        path = f"deploy/{name}"
        assert classify(path, b"x = 1\n") == Skipped(path, LEFT_OUT)
    assert [name for name in NOT_SECRET.split() if is_secret_name(name)] == []


def test_a_token_becomes_asterisks_of_equal_length() -> None:
    for around in ('key = "{}"\n', "{}", "KEY={}\n", "a: {}, b", "curl -H 'X: {}' \\\n", "('{}')"):
        before, _, after = around.partition("{}")
        for kind, token in TOKENS.items():
            text = around.format(token)
            masked, count = mask(text)
            assert count == 1, kind
            assert MASKED.get(kind, token) not in masked
            assert len(masked) == len(text)
            assert masked.startswith(before) and masked.endswith(after)
            assert mask_secrets(masked) == masked


ORDINARY = [
    "task-force-of-the-working-group-2024-results-Final-report",
    "risk-ABCDEFGHIJKLMNOPQRSTUVWXYZ123456",
    "sk-spinner-double-bounce-container-element",
    "MAKIAVELLIAN0000000000000",
    "AKIAIOSFODNN7EXAMPL",
    "ghp_short",
    "def test_the_eyJ_prefix_of_tokens_is_known(self):",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "integrity='sha512-" + "abcDEF123" * 9 + "=='",
    "const AIzaPrefix = 'AIza'",
    "npm_config_registry_and_all_of_its_many_friends_here",
    "-----BEGIN CERTIFICATE-----\n" + PEM_BODY + "\n-----END CERTIFICATE-----",
    "A key begins with -----BEGIN RSA PRIVATE KEY----- and then has many lines of base64 text, "
    "as every one of these files does, until the end",
    "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    "sk_live_ is the prefix; sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']",
    "d41d8cd98f00b204e9800998ecf8427e",
    "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    "550e8400-e29b-41d4-a716-446655440000",
    "cache-key-d41d8cd98f00b204e9800998ecf8427e",
    "TASK0123456789abcdef0123456789abcdef",
    "postgresql://user:password@localhost/db",
    "postgres://postgres:postgres@db:5432/postgres",
    "mysql://scott:tiger@localhost/test",
    "amqp://guest:guest@localhost:5672//",
    "redis://:password@localhost:6379/0",
    "https://user:pass@host.example/path",
    "https://username:your-password@git.example/r.git",
    "https://<user>:<password>@git.example/r.git",
    "f'postgresql://{user}:{password}@{host}/{name}'",
    "postgres://${DB_USER}:${DB_PASSWORD}@db/shop",
    "mysql://root:$MYSQL_PASSWORD@db/shop",
    "'mongodb://%s:%s@%s/' % (user, password, host)",
    "https://x-access-token:***@git.example/r.git",
    "http://localhost:8080/@scope/package",
    "ssh://git@host.example:2222/owner/name.git",
    "uses: docker://alpine:3.18.4@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c",
    "https://cdn.example/npm/vue@3.4.21/dist/vue.js",
    "connect('db', _auth=BasicAuth2Handler(user))",
    "session.get(url, _auth=credentials2Use)",
    "always-auth=true",
    "AccountKey=<your key>;EndpointSuffix=core",
    "Server=db;User Id=sa;Password=your_password;",
    "/login?user=a&password=secret",
    "TWILIO_AUTH_TOKEN=your_auth_token",
    "dapi_client = DapiClient(base)",
    "whsec_ is how a signing secret begins, lin_api_ a key, shpat_ a token",
    "NotificationPreferencesView.create.withDefaultsForEveryKindOfUser()",
    "at 12:30:45 the 1234567890:AAA ran",
]


def test_ordinary_text_is_left_alone() -> None:
    assert [text for text in ORDINARY if mask_secrets(text) != text] == []


KEY_BLOCKS = [
    pem(), pem("EC "), pem(""), pem("OPENSSH "), pem("ENCRYPTED "), 'KEY = """' + pem() + '"""',
    "\n".join(f'    "{line}\\n" +' for line in pem().split("\n")),
    pem().replace("\n", "\\n"),
    "\n".join(f"  {line}" for line in pem().split("\n")),
    pem().replace("\n", "\r\n"),
    pem(body="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,1F\n\n" + PEM_BODY),
    pem(body=PEM_BODY + "\nabcd=="),
]  # fmt: skip


def test_a_private_key_block_in_a_file_is_masked_and_its_lines_stay() -> None:
    for text in KEY_BLOCKS:
        whole = f"first line\n{text}\nlast line {'é' * 30}\n"
        masked, count = mask(whole)
        assert count == 1
        assert not any(line in masked for line in (*PEM_BODY.split("\n"), "abcd=="))
        assert [*map(len, masked.split("\n"))] == [*map(len, whole.split("\n"))]
        assert "PRIVATE KEY-----" in masked and masked.endswith("last line " + "é" * 30 + "\n")


def test_an_aws_secret_is_masked_by_the_name_before_it_and_several_are_counted_apart() -> None:
    secret = letters(40)
    for text in (f"aws_secret_access_key = {secret}\n", f'"AWS_SECRET_ACCESS_KEY": "{secret}"'):
        masked, count = mask(text)
        assert count == 1 and secret not in masked and "ccess" in masked.lower()
    text = " ".join(TOKENS.values())
    masked, count = mask(text)
    assert (count, len(masked)) == (len(TOKENS), len(text))


ALL_SECRET = [
    pem() + "\n",
    "\n\n" + pem("EC ") + "\n" + pem("EC "),
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n" + pem(),
    '{"type": "service_account", "private_key": "' + pem("").replace("\n", "\\n")
    + '", "client_email": "a@b.example"}',
    TOKENS["GitHub token"] + "\n",
    "token=" + TOKENS["OpenAI key"],
]  # fmt: skip
LEFT_OUT = "looks like a secret"


def test_a_file_that_consists_of_a_secret_is_left_out() -> None:
    for content in ALL_SECRET:
        assert is_secret_content(content.encode())
        assert classify("some/file", content.encode()) == Skipped("some/file", LEFT_OUT)
    npmrc = b"//registry.example/:_authToken=abc\n"  # a token for a registry
    assert classify(".npmrc", npmrc) == Skipped(".npmrc", LEFT_OUT)
    assert classify(".npmrc", b"save-exact=true\n") == "source"


def test_a_source_file_with_a_token_is_indexed_without_the_token() -> None:
    token = TOKENS["GitHub token"]
    assert classify("key.py", f"K = '{token}'\n".encode()) == "source"
    assert classify("key.txt", f"K = '{token}'\n".encode()) == Skipped("key.txt", LEFT_OUT)
    source = f'def connect():\n    """Open."""\n    return Client("{token}")\n' + "x = 1\n" * 30
    assert classify("client.py", source.encode()) == "source"
    parsed = parse_file("client.py", source.encode(), "source")
    code = "\n".join(unit.source_code for unit in parsed.units)
    assert token not in code and "*" * len(token) in code
    assert "connect" in {unit.name for unit in parsed.units}


@given(st.text(), st.sampled_from(sorted(TOKENS)), st.text())
def test_length_and_lines_hold_whatever_stands_around(before: str, kind: str, after: str) -> None:
    text = f"{before}\n{TOKENS[kind]}\n{after}"
    masked, count = mask(text)
    assert count >= 1
    assert [*map(len, masked.split("\n"))] == [*map(len, text.split("\n"))]


@given(st.binary())
def test_any_bytes_keep_their_length(data: bytes) -> None:
    assert len(mask_secret_bytes(data)[0]) == len(data)


def test_a_diff_is_masked_as_the_versions_of_its_file_are() -> None:
    key, token = pem(""), "gh" + "p_" + letters(36)
    for mark in "+- ":
        lines = [*key.split("\n"), f"_auth=dXNl{letters(8)}==", token, "plain = 1"]
        diff = "\n".join(["@@ -1 +1 @@", *(mark + line for line in lines)])
        masked = mask_diff(diff)
        assert [len(line) for line in masked.split("\n")] == [len(x) for x in diff.split("\n")]
        assert all(line[0] in "@" + mark for line in masked.split("\n"))
        assert not any(part in masked for part in (*PEM_BODY.split("\n"), token, "dXNl"))
        assert f"{mark}plain = 1" in masked


def test_hostile_content_is_masked_in_linear_time() -> None:
    begin = b"-----BEGIN PRIVATE KEY-----"
    odd = [b"://a:$", b":_auth=aA1", b"?password=", b"MTk4NjIyNDgzNDcxOTI1MjQ4.", b"a" * 30, b"+"]
    for unit in (*odd, b"sk-", b"eyJ", begin, b"xoxb-1", b'\\n"+', b"eyJ."):
        mask_secret_bytes(b"AKIA" + begin + unit * (100_000 // len(unit)))
