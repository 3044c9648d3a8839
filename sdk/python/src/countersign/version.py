"""The version of this library, which is that of the gateway."""

VERSION = "0.1.0"
