"""Public keys that are refused, although `cryptography` takes them.

Under an Ed25519 key of small order a forged signature verifies; with an X25519 key of small order
the shared secret is known to everyone. Only public values are computed with here.
"""

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


def _edwards_y(key: bytes) -> int:
    return (int.from_bytes(key, "little") & (2**255 - 1)) % _P


def is_small_order(point: bytes) -> bool:
    """Whether an Ed25519 key, or the first half of a signature, has an order of 1, 2, 4 or 8."""
    y = _edwards_y(point)
    yy = y * y % _P
    # y is 1 or -1 (orders 1, 2), 0 (order 4), or a root of d y^4 + 2 y^2 - 1 (order 8).
    return y * (yy - 1) * (_D * yy * yy + 2 * yy - 1) % _P == 0


def is_signing_key(key: bytes) -> bool:
    """Whether this is a point of Ed25519, and not of small order."""
    if len(key) != 32 or is_small_order(key):
        return False
    y = _edwards_y(key)
    # x^2 = (y^2 - 1) / (d y^2 + 1) must have a root; the quotient is a square if the product is.
    return pow((y * y - 1) * (_D * y * y + 1), (_P - 1) // 2, _P) <= 1


def is_encryption_key(key: bytes) -> bool:
    """Whether this is an X25519 key in its only spelling, and not of small order."""
    if len(key) != 32:
        return False
    u = int.from_bytes(key, "little")
    # Doubling a point of order 8 leads to order 4 (u = 1 or -1), of order 4 to order 2 (u = 0).
    order_8 = u**4 - 4 * u**3 - (2 + 4 * 486662) * u**2 - 4 * u + 1
    return u < _P and u * (u * u - 1) * order_8 % _P != 0
