# SPDX-License-Identifier: BSD-2-Clause
"""The dynamic symbols of 64-bit little-endian ELF objects, with their versions."""

import struct
from collections import namedtuple

Symbol = namedtuple("Symbol", "name version default kind library weak")

DT_NEEDED, DT_SONAME, DT_FLAGS, DT_FLAGS_1, DT_INIT_ARRAYSZ = 1, 14, 30, 0x6FFFFFFB, 27
SHT_DYNAMIC, SHT_DYNSYM = 6, 11
SHT_VERDEF, SHT_VERNEED, SHT_VERSYM = 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
KINDS = {0: "notype", 1: "data", 2: "function", 10: "function"}


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: not a 64-bit little-endian ELF object")
        shoff, = struct.unpack_from("<Q", self.data, 40)
        entsize, count = struct.unpack_from("<HH", self.data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * entsize)
                         for i in range(count)]
        self.versions = {}  # index -> (node, library it is needed from or None)
        self._read_verdef()
        self._read_verneed()

    def _section(self, kind):
        return next((s for s in self.sections if s[1] == kind), None)

    def _string(self, section, offset):
        start = self.sections[section[6]][4] + offset
        return self.data[start:self.data.index(b"\0", start)].decode()

    def _read_verdef(self):
        self.nodes = []
        s = self._section(SHT_VERDEF)
        at = s[4] if s else None
        while at is not None:
            _, flags, index, _, _, aux, step = struct.unpack_from("<HHHHIII", self.data, at)
            name = self._string(s, struct.unpack_from("<I", self.data, at + aux)[0])
            if not flags & 1:
                self.nodes.append(name)
            self.versions[index] = (name, None)
            at = at + step if step else None

    def _read_verneed(self):
        s = self._section(SHT_VERNEED)
        at = s[4] if s else None
        while at is not None:
            _, count, file, aux, step = struct.unpack_from("<HHIII", self.data, at)
            library = self._string(s, file)
            entry = at + aux
            for _ in range(count):
                _, _, other, name, next_entry = struct.unpack_from("<IHHII", self.data, entry)
                self.versions[other] = (self._string(s, name), library)
                entry += next_entry
            at = at + step if step else None

    def dynamic(self, tag):
        s = self._section(SHT_DYNAMIC)
        return [v for t, v in struct.iter_unpack("<QQ", self.data[s[4]:s[4] + s[5]]) if t == tag]

    def soname(self):
        s = self._section(SHT_DYNAMIC)
        return self._string(s, self.dynamic(DT_SONAME)[0])

    def symbols(self, defined):
        """Every named dynamic symbol that is defined, or that is not."""
        table, versym = self._section(SHT_DYNSYM), self._section(SHT_VERSYM)
        found = []
        for i in range(1, table[5] // 24):
            name, info, other, section, value, _ = struct.unpack_from("<IBBHQQ", self.data,
                                                                      table[4] + 24 * i)
            version, = struct.unpack_from("<H", self.data, versym[4] + 2 * i) if versym else (1,)
            node, library = self.versions.get(version & 0x7FFF, (None, None))
            if section == 0xFFF1 and value == 0:
                continue  # a node's own symbol
            if (section != 0) == defined:
                found.append(Symbol(self._string(table, name),
                                    node if version & 0x7FFF > 1 else None,
                                    not version & 0x8000, KINDS.get(info & 15, "other"), library,
                                    info >> 4 == 2))
        return found

    def needed_nodes(self, library):
        return sorted(n for n, lib in self.versions.values() if lib == library)
