"""The registry of Windows, read as it is there; and nothing elsewhere."""

from __future__ import annotations

import sys

import pytest

from moelauncher.core import windows_registry
from moelauncher.core.windows_registry import keys_below

KEY = r"Software\moelauncher-test"


@pytest.mark.skipif(sys.platform != "win32", reason="Windows has a registry")
def test_keys_come_with_their_values() -> None:
    import winreg

    user = winreg.HKEY_CURRENT_USER
    assert keys_below(KEY, of_user=True) == {}
    try:
        with winreg.CreateKey(user, rf"{KEY}\0000") as key:
            winreg.SetValueEx(key, "DriverDesc", 0, winreg.REG_SZ, "GeForce")
        winreg.CreateKey(user, rf"{KEY}\Properties").Close()
        assert keys_below(KEY, of_user=True) == {
            "0000": {"DriverDesc": "GeForce"},
            "Properties": {},
        }
    finally:
        for name in (rf"{KEY}\0000", rf"{KEY}\Properties", KEY):
            winreg.DeleteKey(user, name)


@pytest.mark.skipif(sys.platform != "win32", reason="Windows knows its processor")
def test_the_processor_has_a_name() -> None:
    assert windows_registry.processor_name()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has a registry")
def test_elsewhere_there_is_nothing() -> None:
    assert keys_below(KEY) == {}
    assert windows_registry.processor_name() is None
    assert windows_registry.network_drives() == ()
    assert windows_registry.display_adapters() == []


def test_adapters_are_the_numbered_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"0000": {"DriverDesc": "GeForce"}, "Configuration": {"x": 1}, "0001": {}}
    monkeypatch.setattr(windows_registry, "keys_below", lambda path, **_: keys)
    assert windows_registry.display_adapters() == [{"DriverDesc": "GeForce"}, {}]


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"0": {"ProcessorNameString": "AMD Ryzen 7 5800X3D  "}, "1": {}}, "AMD Ryzen 7 5800X3D"),
        ({"0": {"ProcessorNameString": 7}}, None),
        ({}, None),
    ],
)
def test_the_first_processor_speaks_for_all(
    keys: dict[str, dict[str, object]], name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows_registry, "keys_below", lambda path, **_: keys)
    assert windows_registry.processor_name() == name
