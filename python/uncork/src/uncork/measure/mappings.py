"""Names of the built-in mappings of logs."""

from typing import Final

MAPPINGS: Final = (
    "nginx", "haproxy", "haproxy-http", "varnish", "caddy", "envoy", "traefik",
    "w3c", "iis", "csv", "cmcd", "cmcd-log",
)  # fmt: skip
