"""Links are asked about, shown as what they are, and only the harmless kinds open."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QDialogButtonBox, QMessageBox, QWidget

from moelauncher.gui.chats.link_question import ask_and_open, may_open


@pytest.fixture
def parent(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    return widget


@pytest.fixture
def opened(monkeypatch):
    urls: list[str] = []
    monkeypatch.setattr(
        QDesktopServices, "openUrl", lambda url: urls.append(url.toString()) or True
    )
    return urls


@pytest.mark.parametrize("address", ["https://a.example/x", "HTTP://a.example", "mailto:a@b.c"])
def test_web_and_mail_may_open(address):
    assert may_open(address)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "vscode://x",
        "/etc/passwd",
        "",
        "data:text/html,x",
    ],
)
def test_nothing_else_opens(parent, opened, address):
    assert not may_open(address)
    box = ask_and_open(address, parent)
    assert [box.standardButton(button) for button in box.buttons()] == [
        QMessageBox.StandardButton.Ok
    ]
    box.buttons()[0].click()
    assert opened == []


def test_open_opens(parent, opened):
    box = ask_and_open("https://a.example/x", parent)
    accept = [b for b in box.buttons() if box.buttonRole(b) == QMessageBox.ButtonRole.AcceptRole]
    accept[0].click()
    assert opened == ["https://a.example/x"]


def test_cancel_is_the_default_and_opens_nothing(parent, opened):
    box = ask_and_open("https://a.example/x", parent)
    assert box.defaultButton() == box.button(QMessageBox.StandardButton.Cancel)
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert opened == []


def test_the_address_is_shown_as_plain_text_and_without_disguise(parent, opened):
    box = ask_and_open("https://\u0430pple.example/<b>", parent)
    assert box.textFormat() == Qt.TextFormat.PlainText
    assert "\u0430" not in box.informativeText()
    assert "xn--" in box.informativeText()
    assert box.findChild(QDialogButtonBox) is not None
    box.reject()
