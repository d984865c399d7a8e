"""PNG files from arrays of pixels, using only the standard library.

Each cell is drawn at the size in pixels at which it is shown, so that no browser blurs it; equal rows compress to
almost nothing. Independent of tensors. Read next: `../renderers/tensor.py`.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np


def png(pixels: np.ndarray, palette: np.ndarray | None = None, clear: int | None = None) -> bytes:
    """Encode uint8 pixels as a PNG file: (H, W) gray, or indices into a uint8 palette (n, 3); (H, W, 3) RGB; (H, W, 2)
    and (H, W, 4) with alpha. clear: index of the transparent palette entry.
    """
    height, width = pixels.shape[:2]
    kind = 3 if palette is not None else 0 if pixels.ndim == 2 else {2: 4, 3: 2, 4: 6}[pixels.shape[2]]
    rows = pixels.reshape(height, -1)
    same = np.zeros(height, bool)
    same[1:] = (rows[1:] == rows[:-1]).all(axis=1)  # filter "up" stores a repeated row as zeros
    lines = np.concatenate(
        [np.where(same, 2, 0).astype(np.uint8)[:, None], np.where(same[:, None], 0, rows).astype(np.uint8)], axis=1
    )
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if palette is not None:
        chunks.append((b"PLTE", palette.astype(np.uint8).tobytes()))
    if clear is not None:
        chunks.append((b"tRNS", b"\xff" * clear + b"\0"))
    chunks += [(b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    body = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def data_uri(image: bytes) -> str:
    """The PNG as a data URI."""
    return "data:image/png;base64," + base64.b64encode(image).decode()


def enlarged(cells: np.ndarray, size: int) -> np.ndarray:
    """Repeat each cell as a square of `size` pixels."""
    return cells.repeat(size, axis=0).repeat(size, axis=1)
