#!/usr/bin/env python3
"""Constructs the files of machines that were never seen, for tests: construct.py NAME >NAME.tree

Forms of files and values are those of Linux 6.1 and of real adapters' documentation; all numbers are
invented. A line of a tree is `f PATH TEXT` (a file; \\n is a line end), `b PATH HEX` (a binary file),
`l PATH TARGET` (a symbolic link).
"""
import struct
import sys

lines = []


def f(path, text):
    lines.append(f"f {path} " + str(text).replace("\\", "\\\\").replace("\n", "\\n"))


def b(path, data):
    lines.append(f"b {path} {data.hex()}")


def l(path, target):
    lines.append(f"l {path} {target}")


class Smbios:
    """A table of SMBIOS 2.8 (DSP0134)."""

    def __init__(self):
        self.data = b""
        self.handle = 0

    def add(self, kind, fixed, strings=()):
        self.handle += 1
        body = struct.pack("<BBH", kind, 4 + len(fixed), self.handle) + fixed
        self.data += body + b"".join(s.encode() + b"\0" for s in strings) + (b"\0" if strings else b"\0\0")

    def system(self, maker, product, serial):
        uuid = bytes(range(0x10, 0x20))
        self.add(1, bytes([1, 2, 3, 4]) + uuid + bytes([6, 5, 6]), [maker, product, "1.0", serial, "SKU-7", "Storage"])

    def board(self, maker, product, serial):
        self.add(2, bytes([1, 2, 3, 4, 5, 9, 6]) + struct.pack("<HBB", 3, 10, 0), [maker, product, "A1", serial, "To Be Filled By O.E.M.", "Here"])

    def chassis(self, maker, serial, units):
        self.add(3, bytes([1, 0x17, 2, 3, 4, 3, 3, 3, 2]) + struct.pack("<IBBBB", 0, units, 2, 0, 0), [maker, "B", serial, "Rack 4"])

    def processor(self, socket, model, cores, threads, populated=True):
        fixed = bytes([1, 3, 0xB3, 2]) + bytes(8) + bytes([3, 0x8B]) + struct.pack("<HHH", 100, 4000, 2400 if populated else 0)
        fixed += bytes([0x41 if populated else 0x00, 0x2B]) + struct.pack("<HHH", 0xFFFF, 0xFFFF, 0xFFFF) + bytes([4, 5, 6])
        fixed += bytes([cores, cores, threads]) + struct.pack("<HH", 0xFC, 0xB3)
        self.add(4, fixed, [socket, "Example", model if populated else "Not Specified", "P-1", "Not Specified", "Part 1"])

    def slot(self, designation, width, used, address):
        segment, bus, device = address if address else (0xFFFF, 0xFF, 0xFF)
        fixed = bytes([1, 0xA5, width, 4 if used else 3, 4]) + struct.pack("<H", self.handle) + bytes([0x0C, 0x01])
        self.add(9, fixed + struct.pack("<HBB", segment, bus, device), [designation])

    def memory(self, locator, bank, mib, speed, serial):
        size = mib if mib < 0x7FFF else 0x7FFF
        fixed = struct.pack("<HHHHHBBBBBHH", 0x1000, 0xFFFE, 72, 64, size, 9, 0, 1, 2, 0x1A, 0x80, speed if mib else 0)
        strings = [locator, bank] + (["ACME", serial, "Asset", "72A-4G"] if mib else ["NO DIMM", "NO DIMM", "NO DIMM", "NO DIMM"])
        fixed += bytes([3, 4, 5, 6, 2]) + struct.pack("<IHHHH", mib if mib >= 0x7FFF else 0, speed if mib else 0, 1200, 1200, 1200)
        self.add(17, fixed, strings)

    def files(self):
        self.add(127, b"")
        count = self.handle
        entry = bytearray(b"_SM_\0\x1f\x02\x08" + struct.pack("<HB", 128, 0) + bytes(5) + b"_DMI_\0")
        entry += struct.pack("<HIHB", len(self.data), 0x20, count, 0x28)
        entry[0x15] = -sum(entry[0x10:0x1F]) & 0xFF
        entry[0x04] = -sum(entry) & 0xFF
        b("sys/firmware/dmi/tables/smbios_entry_point", bytes(entry))
        b("sys/firmware/dmi/tables/DMI", self.data)


def pci(address, parent, cls, ids, link=None, driver=None, subsystem=(0x1000, 0x3090)):
    """A function behind a port of the root complex; its folder."""
    folder = f"sys/devices/pci{address[:5]}{parent}/{address}"
    f(f"{folder}/class", f"0x{cls:06x}")
    for name, value in zip(("vendor", "device", "subsystem_vendor", "subsystem_device"), ids + subsystem):
        f(f"{folder}/{name}", f"0x{value:04x}")
    f(f"{folder}/revision", "0x02")
    if link:
        width, most, speed, fastest = link
        f(f"{folder}/current_link_width", width)
        f(f"{folder}/max_link_width", most)
        f(f"{folder}/current_link_speed", f"{speed} GT/s PCIe")
        f(f"{folder}/max_link_speed", f"{fastest} GT/s PCIe")
    if driver:
        l(f"{folder}/driver", f"../../../bus/pci/drivers/{driver}")
    l(f"sys/bus/pci/devices/{address}", "../../../" + folder[len("sys/"):])
    return folder


def hca(name, folder, number, ports):
    """An adapter with a port for each of (state, physical state, rate, LID)."""
    at = f"{folder}/infiniband/{name}"
    guid = f"0002:c903:000b:{number:02x}00"
    f(f"{at}/fw_ver", "2.9.1000")
    f(f"{at}/board_id", "MT_0D90110009")
    f(f"{at}/hca_type", "MT26428")
    f(f"{at}/hw_rev", "b0")
    f(f"{at}/node_guid", guid)
    f(f"{at}/sys_image_guid", f"0002:c903:000b:{number:02x}03")
    f(f"{at}/node_desc", f"storage-1 {name}")
    for port, (state, physical, rate, lid) in enumerate(ports, 1):
        here = f"{at}/ports/{port}"
        f(f"{here}/state", state)
        f(f"{here}/phys_state", physical)
        f(f"{here}/rate", rate)
        f(f"{here}/lid", f"0x{lid:x}")
        f(f"{here}/sm_lid", "0x1" if lid else "0x0")
        f(f"{here}/link_layer", "InfiniBand")
        f(f"{here}/gids/0", f"fe80:0000:0000:0000:0002:c903:000b:{number:02x}0{port}")
        f(f"{here}/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000")
        f(f"{here}/pkeys/0", "0xffff")
        f(f"{here}/pkeys/1", "0x8001" if lid else "0x0000")
        f(f"{here}/pkeys/2", "0x0000")
    l(f"sys/class/infiniband/{name}", "../../" + at[len("sys/"):])


def ata(port, name, model, serial, sectors, controller):
    at = f"{controller}/ata{port}/host{port}/target{port}:0:0/{port}:0:0:0"
    f(f"{at}/vendor", "ATA     ")
    f(f"{at}/model", model[:16].ljust(16))
    f(f"{at}/rev", "3B6Q")
    f(f"{at}/type", 0)
    f(f"{at}/state", "running")
    f(f"{at}/ioerr_cnt", "0x12")
    f(f"{at}/wwid", f"naa.5002538e0000{port:04x}")
    b(f"{at}/vpd_pg80", bytes([0, 0x80, 0, 20]) + serial.rjust(20).encode())
    disk(name, at, sectors, 0)
    l(f"dev/disk/by-id/ata-{model.replace(' ', '_')}_{serial}", f"../../{name}")
    l(f"dev/disk/by-id/wwn-0x5002538e0000{port:04x}", f"../../{name}")


def disk(name, device, sectors, rotational):
    at = f"{device}/block/{name}"
    f(f"{at}/size", sectors)
    f(f"{at}/queue/rotational", rotational)
    l(f"{at}/device", f"../../../{device.rsplit('/', 1)[1]}")
    l(f"sys/block/{name}", "../" + at[len("sys/"):])


def sensor(chip, number, files, device=None):
    at = f"sys/class/hwmon/hwmon{number}"
    f(f"{at}/name", chip)
    for name, value in files.items():
        f(f"{at}/{name}", value)
    if device:
        l(f"{at}/device", f"../../../{device}")


def hcas():
    """Two dual-port HCAs, one of them on half of its lanes; two sockets; 16 places for memory."""
    table = Smbios()
    table.system("Example", "Storage-1", "S-0001")
    table.board("Example", "Board-1", "B-0001")
    table.chassis("Example", "C-0001", 2)
    table.processor("CPU1", "Example(R) E5530 @ 2.40GHz", 4, 8)
    table.processor("CPU2", "Example(R) E5530 @ 2.40GHz", 4, 8)
    for number in range(16):
        locator = f"P{number // 8 + 1}-DIMM{number % 8 + 1}A"
        table.memory(locator, f"BANK{number}", 0 if number % 8 > 5 else 4096, 1333, f"D-{number:04}")
    table.slot("PCIE1", 0x0B, False, None)
    table.slot("PCIE2", 0x0B, True, (0, 0x03, 0))
    table.slot("PCIE3", 0x0B, True, (0, 0x04, 0))
    table.slot("PCIE4", 0x0A, True, (0, 0x05, 0))
    table.files()
    f("sys/class/dmi/id/bios_version", "1.2.3")
    pci("0000:00:00.0", "", 0x060000, (0x8086, 0x3406))
    pci("0000:00:03.0", "", 0x060400, (0x8086, 0x340A), (8, 8, "5.0", "5.0"), "pcieport")
    pci("0000:00:1f.2", "", 0x010601, (0x8086, 0x3A22), None, "ahci")
    first = pci("0000:03:00.0", "/0000:00:03.0", 0x0C0600, (0x15B3, 0x673C), (8, 8, "5.0", "5.0"), "mlx4_core", (0x15B3, 0x0022))
    second = pci("0000:04:00.0", "/0000:00:05.0", 0x0C0600, (0x15B3, 0x673C), (4, 8, "5.0", "5.0"), "mlx4_core", (0x15B3, 0x0022))
    for function in range(2):
        pci(f"0000:05:00.{function}", "/0000:00:07.0", 0x020000, (0x8086, 0x10C9), (4, 4, "2.5", "2.5"), "igb")
    drive = pci("0000:06:00.0", "/0000:00:09.0", 0x010802, (0x144D, 0xA808), (4, 4, "8.0", "8.0"), "nvme")
    up = ("4: ACTIVE", "5: LinkUp", "40 Gb/sec (4X QDR)")
    hca("mlx4_0", first, 1, [(*up, 5), (*up, 6)])
    hca("mlx4_1", second, 2, [(*up, 7), ("1: DOWN", "2: Polling", "10 Gb/sec (4X)", 0)])
    sata = "sys/devices/pci0000:00/0000:00:1f.2"
    ata(1, "sda", "Example SSD 860 PRO 512GB", "S3ZANB0K000001A", 1000215216, sata)
    ata(2, "sdb", "Example SSD 860 PRO 512GB", "S3ZANB0K000002B", 1000215216, sata)
    at = f"{drive}/nvme/nvme0"
    for name, value in {"model": "Example NVMe 970", "serial": "NV0001", "firmware_rev": "2B2QEXE7"}.items():
        f(f"{at}/{name}", value)
    f(f"{at}/nvme0n1/size", 1953525168)
    f(f"{at}/nvme0n1/queue/rotational", 0)
    f(f"{at}/nvme0n1/wwid", "eui.0025385b71b00001")
    l(f"{at}/nvme0n1/device", "../../nvme0")
    l("sys/block/nvme0n1", "../" + f"{at}/nvme0n1"[len("sys/"):])
    for name in ("loop0", "dm-0", "md0"):
        f(f"sys/block/{name}/size", 2048)
    for number in range(12):
        at = f"sys/devices/system/edac/mc/mc{number // 6}/dimm{number % 6}"
        f(f"{at}/dimm_label", f"P{number // 6 + 1}-DIMM{number % 6 + 1}A")
        f(f"{at}/dimm_ce_count", 3 if number == 7 else 0)
        f(f"{at}/dimm_ue_count", 0)
        f(f"{at}/size", 4096)
    sensor("coretemp", 0, {"temp1_input": 43000, "temp1_label": "Package id 0", "temp1_max": 82000, "temp1_crit": 92000}, "coretemp.0")
    sensor("drivetemp", 1, {"temp1_input": 31000}, "1:0:0:0")
    sensor("w83795g", 2, {"fan1_input": 4200, "fan1_min": 500, "fan2_input": 0, "fan2_min": 500, "fan2_alarm": 1, "in0_input": 1104}, "0-002f")


def chassis():
    """24 SAS disks in an enclosure behind an expander, the ninth with its fault light on."""
    table = Smbios()
    table.system("Example", "JBOD-Head", "S-0024")
    table.board("Example", "Board-24", "B-0024")
    table.chassis("Example", "C-0024", 4)
    table.processor("CPU1", "Example(R) 6226 @ 2.70GHz", 12, 24)
    table.processor("CPU2", "", 0, 0, False)
    for number in range(8):
        table.memory(f"DIMM_A{number + 1}", "Not Specified", 65536 if number % 2 == 0 else 0, 2933, f"D-{number:04}")
    table.slot("SLOT 1", 0x0B, True, (0, 0x3B, 0))
    table.files()
    head = pci("0000:3b:00.0", "/0000:3a:00.0", 0x010700, (0x1000, 0x0097), (8, 8, "8.0", "8.0"), "mpt3sas")
    expander = f"{head}/host0/port-0:0/expander-0:0"
    shelf = f"{expander}/port-0:0:24/end_device-0:0:24/target0:0:24/0:0:24:0/enclosure/0:0:24:0"
    for number in range(24):
        at = f"{expander}/port-0:0:{number}/end_device-0:0:{number}/target0:0:{number}/0:0:{number}:0"
        name = "sd" + "abcdefghijklmnopqrstuvwx"[number]
        f(f"{at}/vendor", "EXAMPLE ")
        f(f"{at}/model", "ST4000NM0023    ")
        f(f"{at}/rev", "0004")
        f(f"{at}/type", 0)
        f(f"{at}/state", "running")
        f(f"{at}/ioerr_cnt", "0x2")
        f(f"{at}/wwid", f"naa.5000c500a000{number:04x}")
        b(f"{at}/vpd_pg80", bytes([0, 0x80, 0, 8]) + f"Z1Z0{number:04}".encode())
        disk(name, at, 7814037168, 1)
        l(f"dev/disk/by-id/wwn-0x5000c500a000{number:04x}", f"../../{name}")
        bay = f"{shelf}/Slot {number + 1:02}"
        f(f"{bay}/slot".replace(" ", "%20"), number + 1)
        f(f"{bay}/type".replace(" ", "%20"), "array device")
        f(f"{bay}/locate".replace(" ", "%20"), 0)
        f(f"{bay}/fault".replace(" ", "%20"), 1 if number == 8 else 0)
        l(f"{bay}/device".replace(" ", "%20"), f"../../../../../../../port-0:0:{number}/end_device-0:0:{number}/target0:0:{number}/0:0:{number}:0")
    l("sys/class/enclosure/0:0:24:0", "../../" + shelf[len("sys/"):])


MACHINES = {"hcas": hcas, "chassis": chassis}

make = MACHINES[sys.argv[1]]
lines.append(f"# CONSTRUCTED by construct.py, never seen on a real machine: {make.__doc__}")
make()
print("\n".join(lines))
