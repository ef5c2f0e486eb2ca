"""Stand-ins for pdh.dll, dxgi.dll and powrprof.dll, compiled by the test: real ctypes calls run.

One adapter of hardware and one of software; counters with one instance each, whose number
grows between the two calls that PDH needs. Widths are this system's own, but for the
adapter's name, which Windows writes in two bytes a character.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
typedef uint32_t status_t;
typedef struct { uint32_t status; int64_t value; } value_t;
typedef struct { const wchar_t *name; value_t value; } item_t;
int stub_opened, stub_closed, stub_released;
static int added, asked;
static const wchar_t *paths[8];
status_t PdhOpenQueryW(const wchar_t *source, uintptr_t data, void **query) {
    *query = (void *)0x7f00000000001234; stub_opened++; return 0;
}
status_t PdhAddEnglishCounterW(void *query, const wchar_t *path, uintptr_t data, void **counter) {
    if (query != (void *)0x7f00000000001234) return 0xC0000BBC;
    if (wcsstr(path, L"Shared")) return 0xC0000BB8; /* this Windows lacks it */
    *counter = (void *)(0x7f00000000000000 + ++added);
    paths[added] = wcsdup(path);
    return 0;
}
status_t PdhCollectQueryData(void *query) { return 0; }
status_t PdhGetFormattedCounterArrayW(void *counter, uint32_t format, uint32_t *size,
                                      uint32_t *count, item_t *items) {
    int index = (uintptr_t)counter & 0xff;
    int process = wcsstr(paths[index], L"Process") != 0;
    uint32_t n = asked++ ? 2 : 1; /* a program has started meanwhile */
    if (format != 0x400) return 0xC0000BBC;
    if (!items || *size < n * sizeof *items) {
        *size = n * sizeof *items; *count = n; return 0x800007D2;
    }
    *count = n;
    items[0].name = process ? L"pid_42_luid_0x00000000_0x0000C8E1_phys_0"
                            : L"luid_0x00000000_0x0000C8E1_phys_0";
    items[0].value.status = 1; items[0].value.value = process ? 1ll << 30 : 3ll << 30;
    items[1].name = L"luid_0x00000000_0x00000007_phys_0";
    items[1].value.status = 0xC0000BBA; items[1].value.value = 99;
    return 0;
}
typedef struct {
    uint32_t status, time_low, time_high; int64_t first, second; uint32_t multi_count;
} raw_t;
status_t PdhGetRawCounterValue(void *counter, uint32_t *type, raw_t *raw) {
    static int64_t reads = 5000000000;
    int index = (uintptr_t)counter & 0xff;
    if (wcscmp(paths[index], L"\\Memory\\Page Reads/sec")) return 0xC0000BBC;
    raw->status = 1; raw->first = reads += 700; raw->second = -1; raw->multi_count = 0;
    return 0;
}
status_t PdhCloseQuery(void *query) { stub_closed++; return 0; }

typedef struct {
    uint16_t description[128];
    uint32_t vendor, device, subsystem, revision;
    size_t video, system, shared;
    uint32_t luid_low; int32_t luid_high; uint32_t flags;
} description_t;
typedef struct object { void **table; int index; } object_t;
static uint32_t release(object_t *self) { stub_released++; return 0; }
static int32_t get_description(object_t *self, description_t *text) {
    const char *name = self->index ? "Microsoft Basic Render Driver" : "NVIDIA GeForce RTX 4070";
    memset(text, 0, sizeof *text);
    for (int i = 0; name[i]; i++) text->description[i] = name[i];
    text->video = 12ull << 30;
    text->luid_low = self->index ? 7 : 0xC8E1;
    text->flags = self->index ? 2 : 0;
    return 0;
}
static void *adapter_table[11];
static object_t adapters[2];
static int32_t enumerate(object_t *self, uint32_t index, object_t **adapter) {
    if (index > 1) return 0x887A0002;
    adapter_table[2] = release; adapter_table[10] = get_description;
    adapters[index].table = adapter_table; adapters[index].index = index;
    *adapter = &adapters[index];
    return 0;
}
static void *factory_table[13];
static object_t factory;
int32_t CreateDXGIFactory1(const uint8_t *iid, object_t **result) {
    if (iid[0] != 0x78 || iid[15] != 0x87) return 0x80004002;
    factory_table[2] = release; factory_table[12] = enumerate;
    factory.table = factory_table;
    *result = &factory;
    return 0;
}

int stub_freed;
static const uint8_t balanced[16] = {0x22, 0x42, 0x1b, 0x38, 0x94, 0xf6, 0xf0, 0x41,
                                     0x96, 0x85, 0xff, 0x5b, 0xb2, 0x60, 0xdf, 0x2e};
static const uint8_t efficiency[16] = {0x77, 0xc7, 0x1c, 0x96, 0x47, 0x25, 0x9d, 0x4f,
                                       0x81, 0x74, 0x7d, 0x86, 0x18, 0x1b, 0x8a, 0x7a};
uint32_t PowerGetActiveScheme(void *root, uint8_t **scheme) {
    if (root) return 87;
    *scheme = malloc(16); memcpy(*scheme, balanced, 16);
    return 0;
}
uint32_t PowerGetEffectiveOverlayScheme(uint8_t *scheme) {
    memcpy(scheme, efficiency, 16); return 0;
}
void *LocalFree(void *memory) { free(memory); stub_freed++; return 0; }
"""


def build_stub(folder: Path) -> Path:
    """Compile all as one library; returns its path."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler is needed (Debian: apt install gcc)"
    source = folder / "windows_stub.c"
    source.write_text(SOURCE, encoding="utf-8")
    library = folder / "windows_stub.so"
    command = [compiler, "-shared", "-fPIC", "-w", "-o", str(library), str(source)]
    subprocess.run(command, check=True, timeout=240)
    return library
