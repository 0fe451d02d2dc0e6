"""CRC-32C, the checksum of TensorFlow's files, fast enough in numpy for gigabytes.

The checksum is linear: a word of the message may be replaced by what it becomes so many bytes
further on. Thus all words of a row are moved to the next row at once, until one row is left.
"""

from functools import lru_cache

import numpy as np

# reversed, as the Castagnoli polynomial is used
POLYNOMIAL = 0x82F63B78
ALL_ONES = 0xFFFFFFFF
# words of a row: a message is folded to one row of the first length, and that to one of the next
ROWS = (16384, 512, 16)


def byte_table() -> list[int]:
    """The register after one more byte of zeros, by its lowest byte."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


BYTES = byte_table()


def apply(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The product of a matrix over two elements, given by its 32 columns, with many vectors."""
    product = np.zeros_like(values)
    for bit, column in enumerate(columns):
        product ^= column * (values >> np.uint32(bit) & np.uint32(1))
    return product


@lru_cache
def shift_tables(words: int) -> tuple[np.ndarray, np.ndarray]:
    """What the lower and the upper half of a register become so many words of zeros further on."""
    bits = [1 << bit for bit in range(32)]
    power = np.array([BYTES[bit & 255] ^ bit >> 8 for bit in bits], np.uint32)
    columns = np.array(bits, np.uint32)
    count = 4 * words
    while count:
        if count & 1:
            columns = apply(power, columns)
        power = apply(power, power)
        count >>= 1
    halves = np.arange(1 << 16, dtype=np.uint32)
    return apply(columns, halves), apply(columns, halves << np.uint32(16))


def fold(rows: np.ndarray, register: int) -> np.ndarray:
    """One row that has the same checksum as all of them; `register` is what came before."""
    low, high = shift_tables(rows.shape[1])
    moved = rows[0].astype(np.uint32)
    moved[0] ^= np.uint32(register)
    for row in rows[1:]:
        moved = low.take(moved & np.uint32(0xFFFF)) ^ high.take(moved >> np.uint32(16))
        moved ^= row
    return moved


def crc32c(data: bytes | np.ndarray) -> int:
    """The checksum of bytes."""
    message = np.frombuffer(data, np.uint8)
    register = ALL_ONES
    for words in ROWS:
        whole = len(message) // (4 * words) * 4 * words
        if whole > 4 * words:
            folded = fold(message[:whole].view("<u4").reshape(-1, words), register)
            register = 0
            rest = message[whole:]
            message = np.concatenate([folded.astype("<u4").view(np.uint8), rest])
    for byte in message.tolist():
        register = BYTES[(register ^ byte) & 255] ^ register >> 8
    return register ^ ALL_ONES


def masked_crc32c(data: bytes | np.ndarray) -> int:
    """As it is stored: the checksum of something that holds its own checksum would be weak."""
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & ALL_ONES
