"""Draws the program's icon in every size: PNG files, and one .ico with several inside.

Run with the packaging environment's Python: ``draw_icons.py ICON.svg FOLDER``. Qt draws, so no
other program is needed.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgRenderer

PNG_SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 256, 512)
ICO_SIZES = (16, 24, 32, 48, 64, 128, 256)


def draw(renderer: QSvgRenderer, size: int) -> bytes:
    """The icon as the bytes of a PNG file, ``size`` pixels high and wide."""
    image = QImage(QSize(size, size), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(data.data())


def ico_bytes(pictures: dict[int, bytes]) -> bytes:
    """An .ico file of PNG pictures: a table, then the files themselves."""
    table, body = b"", b""
    offset = 6 + 16 * len(pictures)
    for size, png in sorted(pictures.items()):
        side = size if size < 256 else 0
        table += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(png), offset + len(body))
        body += png
    return struct.pack("<HHH", 0, 1, len(pictures)) + table + body


def main(svg: Path, folder: Path) -> int:
    """Write all pictures into ``folder``."""
    app = QGuiApplication([])
    renderer = QSvgRenderer(str(svg))
    if not renderer.isValid():
        print(f"{svg} is no picture that Qt can draw", file=sys.stderr)
        return 1
    pictures = {size: draw(renderer, size) for size in sorted({*PNG_SIZES, *ICO_SIZES})}
    for size in PNG_SIZES:
        target = folder / f"{size}x{size}" / "moelauncher.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(pictures[size])
    (folder / "moelauncher.ico").write_bytes(ico_bytes({s: pictures[s] for s in ICO_SIZES}))
    del app
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
