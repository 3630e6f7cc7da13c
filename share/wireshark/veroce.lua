-- SPDX-License-Identifier: BSD-2-Clause
--
-- Wireshark dissector for veRoCE (UDP destination port 4794):
--
--     tshark -X lua_script:veroce.lua -r x.pcap
--     tshark -X lua_script:veroce.lua -r x.pcap -Y "veroce.icrc.status == 0 || _ws.expert"
--
-- It shares no code with the implementation, so that the one can judge the other. No heuristics: a
-- packet is veRoCE because of its port or because of "Decode As". What must never be on the wire is a
-- warning (group Malformed if the bytes do not make sense, Protocol if they say what may not be said);
-- what the specification lets senders choose, but advises against, is a note.

local veroce = Proto("veroce", "veRoCE")

local PORT = 4794 -- veRoCE 1
local ICRC_LEN = 4
local BTH_LEN = 12
local MAX_BLOCKS = 8 -- veRoCE 5.5
local NO_PO = 0xffffff -- veRoCE 2: "no info", in acknowledgements only
local PMTUS = { [256] = true, [512] = true, [1024] = true, [2048] = true, [4096] = true, [8192] = true }
local MAX_PMTU = 8192

veroce.prefs.port = Pref.uint("UDP port", PORT, "UDP destination port of veRoCE")
veroce.prefs.trimmed = Pref.uint("DSCP of trimmed packets", 9, "How switches mark a packet whose payload they cut off")
veroce.prefs.icrc = Pref.bool("Check the ICRC", true, "Compute the invariant CRC of every packet")
veroce.prefs.secrets = Pref.string("Secrets", "", "What ICRCs may be XORed with where the CAPS packets that "
	.. "agreed on it are not in the capture: hexadecimal numbers with spaces between")

---------------------------------------------------------------------------------------------------
-- Opcodes (veRoCE 3): name, PSN space, stack, and what payload there is: full (a PMTU: all but the last
-- packet of a message), some (the last of several: at least a byte), any or none.

local OPCODES = {
	[0x00] = { "SEND First", "Q", "MSNETH RQETH", "full" },
	[0x01] = { "SEND Middle", "Q", "MSNETH RQETH POETH", "full" },
	[0x02] = { "SEND Last", "Q", "MSNETH RQETH POETH", "some" },
	[0x03] = { "SEND Last Imm", "Q", "MSNETH RQETH POETH ImmDt", "some" },
	[0x04] = { "SEND Only", "Q", "MSNETH RQETH", "any" },
	[0x05] = { "SEND Only Imm", "Q", "MSNETH RQETH ImmDt", "any" },
	[0x06] = { "WRITE First", "Q", "MSNETH RETH", "full" },
	[0x07] = { "WRITE Middle", "Q", "MSNETH RETH POETH", "full" },
	[0x08] = { "WRITE Last", "Q", "MSNETH RETH POETH", "some" },
	[0x09] = { "WRITE Last Imm", "Q", "MSNETH RETH RQETH POETH ImmDt", "some" },
	[0x0a] = { "WRITE Only", "Q", "MSNETH RETH", "any" },
	[0x0b] = { "WRITE Only Imm", "Q", "MSNETH RETH RQETH ImmDt", "any" },
	[0x0c] = { "READ Request", "Q", "MSNETH RETH", "none" },
	[0x0d] = { "READ Rsp First", "R", "MSNETH AETH", "full" },
	[0x0e] = { "READ Rsp Middle", "R", "MSNETH AETH POETH", "full" },
	[0x0f] = { "READ Rsp Last", "R", "MSNETH AETH POETH", "some" },
	[0x10] = { "READ Rsp Only", "R", "MSNETH AETH", "any" },
	[0x11] = { "ACK", "q", "AETH POETH", "none" },
	[0x12] = { "Atomic ACK", "R", "MSNETH AETH AtomicAckETH", "none" },
	[0x13] = { "CmpSwap", "Q", "MSNETH AtomicETH", "none" },
	[0x14] = { "FetchAdd", "Q", "MSNETH AtomicETH", "none" },
	[0x16] = { "SEND Last Inv", "Q", "MSNETH RQETH POETH IETH", "some" },
	[0x17] = { "SEND Only Inv", "Q", "MSNETH RQETH IETH", "any" },
	[0x18] = { "SACK", "q", "AETH POETH SACKETH", "none" },
	[0x19] = { "ACK_Rsp", "r", "AETH POETH", "none" },
	[0x1c] = { "FLUSH", "Q", "MSNETH FETH RETH", "none" },
	[0x1d] = { "ATOMIC WRITE", "Q", "MSNETH RETH", "any" },
	[0x1e] = { "SACK_Rsp", "r", "AETH POETH SACKETH", "none" },
	[0x81] = { "CNP", "-", "CNP", "none" },
	[0x82] = { "RTT Request", "-", "RTTReqETH", "none" },
	[0x83] = { "RTT Response", "-", "RTTRspETH", "none" },
	[0x84] = { "Slow-Packet Signal", "-", "SLOW", "none" },
	[0xf0] = { "CAPS Request", "-", "CAPSETH", "none" },
	[0xf1] = { "CAPS Response", "-", "CAPSETH", "none" },
	[0xf2] = { "HOLD", "-", "HOLDETH", "none" },
	[0xf3] = { "HELD", "-", "HOLDETH", "none" },
	[0xf4] = { "ROAM", "-", "ROAMETH", "none" },
}

local opcode_names = {}
for code, row in pairs(OPCODES) do
	opcode_names[code] = row[1]
end

---------------------------------------------------------------------------------------------------
-- Fields

local SPACES = { Q = "request space", R = "response space", q = "acknowledges the request space",
	r = "acknowledges the response space" }
local ICRC_STATUS = { [0] = "Bad", [1] = "Good", [2] = "Unverified" }
local ROAM_STEPS = { "MOVED", "CHALLENGE", "ECHO", "DONE" }
local PMTU_CODES = { "256", "512", "1024", "2048", "4096", "8192" }

local f = {}

local function add_field(key, kind, abbr, name, ...)
	f[key] = ProtoField[kind]("veroce." .. abbr, name, ...)
end

-- BTH (veRoCE 2)
add_field("opcode", "uint8", "bth.opcode", "Opcode", base.HEX, opcode_names)
add_field("se", "bool", "bth.se", "Solicited event", 8, nil, 0x80)
add_field("migreq", "bool", "bth.migreq", "MigReq", 8, nil, 0x40)
add_field("padcnt", "uint8", "bth.padcnt", "Pad count", base.DEC, nil, 0x30)
add_field("tver", "uint8", "bth.tver", "Transport version", base.DEC, nil, 0x0f)
add_field("pkey", "uint16", "bth.pkey", "Partition key", base.HEX)
add_field("fecn", "bool", "bth.fecn", "FECN", 8, nil, 0x80)
add_field("becn", "bool", "bth.becn", "BECN", 8, nil, 0x40)
add_field("resv6", "uint8", "bth.resv6", "Reserved", base.HEX, nil, 0x3f)
add_field("dqpn", "uint24", "bth.dqpn", "Destination QP", base.HEX)
add_field("ackreq", "bool", "bth.ackreq", "AckReq (A)", 8, nil, 0x80)
add_field("retrans", "bool", "bth.retrans", "Retransmission (R)", 8, nil, 0x40)
add_field("ts_present", "bool", "bth.ts", "Time stamps (T)", 8, nil, 0x20)
add_field("resv5", "uint8", "bth.resv5", "Reserved", base.HEX, nil, 0x1f)
add_field("psn", "uint24", "bth.psn", "PSN", base.DEC)
add_field("space", "string", "space", "PSN space")
-- One word each (veRoCE 2)
add_field("msn_resv", "uint8", "msn.resv", "Reserved", base.HEX)
add_field("msn", "uint24", "msn", "Message number (MSN)", base.DEC)
add_field("rqmsn_resv", "uint8", "rqmsn.resv", "Reserved", base.HEX)
add_field("rqmsn", "uint24", "rqmsn", "Receive-queue message number (RQMSN)", base.DEC)
add_field("po_resv", "uint8", "po.resv", "Reserved", base.HEX)
add_field("po", "uint24", "po", "Packet offset (PO)", base.DEC)
add_field("immdt", "uint32", "immdt", "Immediate data", base.HEX)
add_field("ieth_rkey", "uint32", "ieth.rkey", "R_Key to invalidate", base.HEX)
add_field("syndrome", "uint8", "aeth.syndrome", "Syndrome", base.HEX)
add_field("aeth_msn", "uint24", "aeth.msn", "MSN", base.DEC)
-- FETH, RETH and the atomic headers
add_field("feth_resv", "uint32", "feth.resv", "Reserved", base.HEX, nil, 0xffffffc0)
add_field("feth_sel", "uint32", "feth.sel", "Selectivity level", base.DEC, { [0] = "range", [1] = "memory region" }, 0x30)
add_field("feth_plt", "uint32", "feth.plt", "Placement type", base.HEX, nil, 0x0f)
add_field("va", "uint64", "reth.va", "Virtual address", base.HEX)
add_field("rkey", "uint32", "reth.rkey", "R_Key", base.HEX)
add_field("len", "uint32", "reth.len", "DMA length", base.DEC)
add_field("at_va", "uint64", "atomiceth.va", "Virtual address", base.HEX)
add_field("at_rkey", "uint32", "atomiceth.rkey", "R_Key", base.HEX)
add_field("at_swap", "uint64", "atomiceth.swap", "Swap or add data", base.HEX)
add_field("at_compare", "uint64", "atomiceth.compare", "Compare data", base.HEX)
add_field("at_orig", "uint64", "atomicacketh.orig", "Original data", base.HEX)
-- SACKETH
add_field("sack_len", "uint8", "sack.valid_len", "ValidLen", base.DEC)
add_field("sack_psn", "uint24", "sack.start_psn", "StartPSN", base.DEC)
add_field("sack_bitmap", "bytes", "sack.bitmap", "Bitmap")
add_field("sack_received", "string", "sack.received", "Received PSNs")
add_field("sack_missing", "string", "sack.missing", "Missing PSNs")
-- RTTReqETH, RTTRspETH
add_field("rtt_context", "uint32", "rtt.context", "Congestion control context", base.HEX)
add_field("rtt_tx1", "uint32", "rtt.tx1", "TX1: request left the sender (ns)", base.DEC)
add_field("rtt_rx1", "uint32", "rtt.rx1", "RX1: request reached the receiver (ns)", base.DEC)
add_field("rtt_tx2", "uint32", "rtt.tx2", "TX2: response left the receiver (ns)", base.DEC)
add_field("rtt_rx2", "uint32", "rtt.rx2", "RX2: response reached the sender (ns)", base.DEC)
add_field("cnp_resv", "bytes", "cnp.resv", "Reserved")
-- CAPSETH (veRoCE 13.1)
add_field("caps_magic", "uint32", "caps.magic", "Magic", base.HEX)
add_field("caps_ver", "uint8", "caps.version", "Version", base.DEC)
add_field("caps_profile", "uint8", "caps.profile", "Profile", base.DEC)
add_field("caps_flags", "uint16", "caps.flags", "Flags", base.HEX)
add_field("caps_multi_sack", "bool", "caps.flags.multi_sack", "MULTI_SACK", 16, nil, 0x0001)
add_field("caps_ts", "bool", "caps.flags.ts", "TS", 16, nil, 0x0002)
add_field("caps_pmtu8192", "bool", "caps.flags.pmtu8192", "PMTU8192", 16, nil, 0x0004)
add_field("caps_trim", "bool", "caps.flags.trim", "TRIM", 16, nil, 0x0008)
add_field("caps_rxshare", "bool", "caps.flags.rxshare", "RXSHARE", 16, nil, 0x0010)
add_field("caps_sack_any", "bool", "caps.flags.sack_any", "SACK_ANY", 16, nil, 0x0020)
add_field("caps_seal", "bool", "caps.flags.seal", "SEAL", 16, nil, 0x0080)
add_field("caps_alike", "bool", "caps.flags.alike", "ALIKE", 16, nil, 0x0100)
add_field("caps_large", "bool", "caps.flags.large", "LARGE", 16, nil, 0x0200)
add_field("caps_hold", "bool", "caps.flags.hold", "HOLD", 16, nil, 0x0400)
add_field("caps_roam", "bool", "caps.flags.roam", "ROAM", 16, nil, 0x0800)
add_field("caps_flags_resv", "uint16", "caps.flags.resv", "Reserved", base.HEX, nil, 0xf000)
add_field("caps_pmtu", "uint8", "caps.pmtu", "PMTU code", base.DEC, PMTU_CODES)
add_field("caps_rxwinq", "uint24", "caps.rxwinq", "Receive window, requests (packets)", base.DEC)
add_field("caps_paths", "uint8", "caps.numpaths", "Number of paths (0 means 256)", base.DEC)
add_field("caps_rxwinr", "uint24", "caps.rxwinr", "Receive window, responses (packets)", base.DEC)
add_field("caps_state", "uint8", "caps.state", "State (1: what follows is sealed)", base.HEX)
add_field("caps_qpn", "uint24", "caps.qpn", "Source QP", base.HEX)
add_field("caps_nonce", "uint32", "caps.nonce", "Nonce", base.HEX)
add_field("caps_t", "uint16", "caps.t_hint", "T hint", base.DEC)
add_field("caps_timer", "uint16", "caps.ack_timer", "Acknowledgement timer (us)", base.DEC)
add_field("caps_own_nonce", "uint32", "caps.own_nonce", "Nonce of who answers", base.HEX)
-- HOLDETH (veRoCE 13.4)
add_field("hold_ms", "uint16", "hold.ms", "Time (ms; 0: resumes)", base.DEC)
add_field("hold_number", "uint16", "hold.number", "Number", base.DEC)
add_field("hold_resv", "uint8", "hold.resv", "Reserved", base.HEX)
add_field("hold_qpn", "uint24", "hold.qpn", "Source QP", base.HEX)
add_field("hold_nonce", "uint32", "hold.nonce", "Nonce of who receives it", base.HEX)
-- ROAMETH (veRoCE 13.5)
add_field("roam_step", "uint8", "roam.step", "Step", base.DEC, ROAM_STEPS)
add_field("roam_qpn", "uint24", "roam.qpn", "Source QP", base.HEX)
add_field("roam_number", "uint32", "roam.number", "Number of the move", base.DEC)
add_field("roam_challenge", "uint64", "roam.challenge", "Challenge", base.HEX)
add_field("roam_mac", "uint64", "roam.mac", "MAC (not verified)", base.HEX)
-- TSETH, TSEETH (veRoCE 13.2)
add_field("ts_tx1", "uint32", "ts.tx1", "TX1 (ns)", base.DEC)
add_field("ts_path", "uint8", "ts.path_id", "PathID", base.DEC)
add_field("ts_seq", "uint24", "ts.path_seq", "PathSeq", base.DEC)
add_field("tse_tx1", "uint32", "tse.tx1", "TX1 echo (ns)", base.DEC)
add_field("tse_rx1", "uint32", "tse.rx1", "RX1 (ns)", base.DEC)
add_field("tse_tx2", "uint32", "tse.tx2", "TX2 (ns)", base.DEC)
add_field("tse_path", "uint8", "tse.path_id", "PathID", base.DEC)
add_field("tse_rcv", "uint24", "tse.path_rcv", "PathRcv", base.DEC)
add_field("tse_dups", "uint8", "tse.dups", "Duplicates seen (mod 256)", base.DEC)
add_field("tse_ce", "uint24", "tse.path_ce", "PathCE", base.DEC)
add_field("tse_share", "uint32", "tse.share", "Share of the receiver (kbit/s), 0: none", base.DEC)
-- The rest
add_field("payload", "bytes", "payload", "Payload")
add_field("payload_len", "uint32", "payload_len", "Payload length", base.DEC)
add_field("pad", "bytes", "pad", "Pad")
add_field("extra", "bytes", "extra", "Bytes that belong to no header")
add_field("icrc", "uint32", "icrc", "ICRC", base.HEX)
add_field("icrc_computed", "uint32", "icrc.computed", "Computed ICRC", base.HEX)
add_field("icrc_secret", "uint32", "icrc.secret", "ICRC is XORed with", base.HEX)
add_field("icrc_status", "uint8", "icrc.status", "ICRC status", base.DEC, ICRC_STATUS)

do
	local list = {}
	for _, field in pairs(f) do
		list[#list + 1] = field
	end
	veroce.fields = list
end

local function new_expert(abbr, text, group, severity)
	return ProtoExpert.new("veroce.expert." .. abbr, text, expert.group[group], expert.severity[severity])
end

local e = {
	length = new_expert("length", "Length does not fit the opcode", "MALFORMED", "WARN"),
	reserved = new_expert("reserved", "Reserved bits set", "MALFORMED", "WARN"),
	opcode = new_expert("opcode", "Unknown opcode", "MALFORMED", "WARN"),
	tver = new_expert("tver", "Transport version is not 0", "MALFORMED", "WARN"),
	validlen = new_expert("valid_len", "ValidLen outside 1..128", "MALFORMED", "WARN"),
	padcnt = new_expert("padcnt", "PadCnt in a packet without payload", "MALFORMED", "WARN"),
	pad = new_expert("pad", "Pad bytes not zero", "MALFORMED", "WARN"),
	ts = new_expert("ts", "T set in a packet that has no time stamps", "MALFORMED", "WARN"),
	syndrome = new_expert("syndrome", "Syndrome without meaning here", "PROTOCOL", "WARN"),
	value = new_expert("value", "Value not allowed", "PROTOCOL", "WARN"),
	unusual = new_expert("unusual", "Not as senders should", "PROTOCOL", "NOTE"),
	trimmed = new_expert("trimmed", "Payload cut off by a switch", "SEQUENCE", "NOTE"),
	cut = new_expert("cut", "Packet cut short by the capture", "UNDECODED", "NOTE"),
	icrc = new_expert("icrc", "Bad ICRC", "CHECKSUM", "ERROR"),
}
do
	local list = {}
	for _, x in pairs(e) do
		list[#list + 1] = x
	end
	veroce.experts = list
end

---------------------------------------------------------------------------------------------------
-- CRC-32 (veRoCE 1.1), four bytes a step: captures have many packets of 4 KB. Divisions instead of
-- shifts where they do, because a call costs more than arithmetic.

local bits = bit32 or bit
local bxor, byte, floor = bits.bxor, string.byte, math.floor
local WORD = 0x100000000
local crc_tables = { {}, {}, {}, {} }

for i = 0, 255 do
	local c = i
	for _ = 1, 8 do
		c = c % 2 == 1 and bxor(floor(c / 2), 0xedb88320) % WORD or floor(c / 2)
	end
	crc_tables[1][i] = c
end
for k = 2, 4 do
	for i = 0, 255 do
		local c = crc_tables[k - 1][i]
		crc_tables[k][i] = bxor(floor(c / 256), crc_tables[1][c % 256]) % WORD
	end
end

local CRC_START = 0xdebb20e3 -- the register after 64 one-bits, veRoCE 1.1

local function crc_update(c, s)
	local t0, t1, t2, t3 = crc_tables[1], crc_tables[2], crc_tables[3], crc_tables[4]
	local n = #s
	local whole = n - n % 4
	for i = 1, whole, 4 do
		local b0, b1, b2, b3 = byte(s, i, i + 3)
		local x = bxor(c, b0 + b1 * 0x100 + b2 * 0x10000 + b3 * 0x1000000) % WORD
		local x0 = x % 256
		x = (x - x0) / 256
		local x1 = x % 256
		x = (x - x1) / 256
		local x2 = x % 256
		c = bxor(t3[x0], t2[x1], t1[x2], t0[(x - x2) / 256])
	end
	for i = whole + 1, n do
		c = c % WORD
		c = bxor(floor(c / 256), t0[bxor(c % 256, byte(s, i)) % 256])
	end
	return c % WORD
end

local ONES = "\255"

-- The text with its bytes first..last (from 0) all ones.
local function ones(s, first, last)
	return s:sub(1, first) .. ONES:rep(last - first + 1) .. s:sub(last + 2)
end

-- ip: the bytes from the IP header to the UDP header, as they were on the wire, IPv4 identification
-- included; udp: the UDP header; body: BTH up to the pad. What may change on the way counts as ones.
local function icrc_of(ip, udp, body)
	local b0, b1 = byte(ip, 1, 2)
	if floor(b0 / 16) == 4 then
		ip = ones(ip, 1, 1) -- ToS
		ip = ones(ip, 8, 8) -- TTL
		ip = ones(ip, 10, 11) -- header checksum
	else
		-- traffic class, flow label
		ip = string.char(b0 - b0 % 16 + 15) .. ONES:rep(3) .. ip:sub(5)
		ip = ones(ip, 7, 7) -- hop limit
	end
	udp = ones(udp, 6, 7)
	body = ones(body, 4, 4) -- FECN, BECN, resv6
	return bxor(crc_update(crc_update(crc_update(CRC_START, ip), udp), body), 0xffffffff) % WORD
end

---------------------------------------------------------------------------------------------------
-- The layers below

local ip4_field, ip6_field, udp_field = Field.new("ip"), Field.new("ipv6"), Field.new("udp")
local icmp4_field, icmp6_field = Field.new("icmp"), Field.new("icmpv6")

-- The innermost of several headers of one kind.
local function last(field)
	local all = { field() }
	return all[#all]
end

-- The bytes from IP to UDP and the UDP header itself, or nothing if Wireshark has not kept them, as with
-- a reassembled datagram, whose header is that of no packet.
local function lower_headers(tvb)
	local udp, ip4, ip6 = last(udp_field), last(ip4_field), last(ip6_field)
	if not udp or udp.offset + 8 ~= tvb:offset() then
		return
	end
	local ip = ip4
	if ip6 and (not ip4 or ip6.offset > ip4.offset) then
		ip = ip6
	end
	if not ip or ip.offset + (ip == ip4 and 20 or 40) > udp.offset then
		return
	end
	local source = ip.source
	local between = udp.offset - ip.offset
	local version = floor(source:range(ip.offset, 1):uint() / 16)
	if version == 4 and between ~= source:range(ip.offset, 1):uint() % 16 * 4 then
		return
	end
	return source:range(ip.offset, between):raw(), source:range(udp.offset, 8):raw(), version
end

---------------------------------------------------------------------------------------------------
-- Headers. A packet being dissected is p = {tvb, tree, at, stop, captured, info, ...}: at is the next
-- byte, stop the first byte of the ICRC. Every header function is called with its bytes at hand.

local function complain(p, what, text, item)
	(item or p.tree):add_proto_expert_info(what, text)
end

local function hex(n, digits)
	return string.format("0x%0" .. digits .. "x", n)
end

local function say(p, ...)
	p.info[#p.info + 1] = string.format(...)
end

local function reserved(p, parent, field, range)
	local item = parent:add(field, range)
	if range:uint() ~= 0 then
		complain(p, e.reserved, "Reserved bits are " .. hex(range:uint(), 2 * range:len()), item)
	end
end

-- The next n bytes as a subtree, or nothing if the packet or what was captured of it ends before.
local function take(p, n, name)
	if p.broken then
		return
	end
	local left = p.stop - p.at
	if left < n then
		p.broken = true
		complain(p, e.length, string.format("%s has %d bytes, but only %d are left for it", name, n, math.max(left, 0)))
		return
	end
	if p.at + n > p.captured then
		p.broken = true
		return
	end
	local range = p.tvb:range(p.at, n)
	p.at = p.at + n
	return range, p.tree:add(range, name)
end

local RNR_MS = { [0] = "655.36", "0.01", "0.02", "0.03", "0.04", "0.06", "0.08", "0.12", "0.16", "0.24", "0.32",
	"0.48", "0.64", "0.96", "1.28", "1.92", "2.56", "3.84", "5.12", "7.68", "10.24", "15.36", "20.48",
	"30.72", "40.96", "61.44", "81.92", "122.88", "163.84", "245.76", "327.68", "491.52" }
local NAKS = { [0x60] = "NAK: packet drop", [0x61] = "NAK: invalid request", [0x62] = "NAK: remote access error",
	[0x63] = "NAK: remote operational error", [0x64] = "NAK: invalid RD request" }

-- veRoCE 5.1: the words, and the kind, one of ack rnr nak none.
local function syndrome_words(s)
	local class, code = floor(s / 32), s % 32
	if class == 0 then
		return code == 31 and "ACK, credits not used" or string.format("ACK, credit code %d", code), "ack"
	elseif class == 1 then
		return "RNR NAK, " .. RNR_MS[code] .. " ms", "rnr"
	elseif NAKS[s] then
		return NAKS[s], s == 0x64 and "none" or "nak"
	end
	return "reserved syndrome", "none"
end

local H = {}

local function word24(name, resv_field, field, label, key)
	return function(p)
		local range, tree = take(p, 4, name)
		if range then
			reserved(p, tree, resv_field, range:range(0, 1))
			p[key .. "_item"] = tree:add(field, range:range(1, 3))
			p[key] = range:range(1, 3):uint()
			tree:append_text(string.format(", %s %d", label, p[key]))
			say(p, "%s=%d", label, p[key])
		end
	end
end

H.MSNETH = word24("Message Number Header (MSNETH)", f.msn_resv, f.msn, "MSN", "msn")
H.RQETH = word24("Receive Queue Header (RQETH)", f.rqmsn_resv, f.rqmsn, "RQMSN", "rqmsn")
H.POETH = word24("Packet Offset Header (POETH)", f.po_resv, f.po, "PO", "po")

function H.AETH(p)
	local range, tree = take(p, 4, "Acknowledge Header (AETH)")
	if not range then
		return
	end
	local s = range:range(0, 1):uint()
	local words, kind = syndrome_words(s)
	local item = tree:add(f.syndrome, range:range(0, 1))
	item:append_text(" (" .. words .. ")")
	tree:add(f.aeth_msn, range:range(1, 3))
	tree:append_text(string.format(", %s, MSN %d", words, range:range(1, 3):uint()))
	p.syndrome, p.kind = s, kind
	say(p, p.op.ack and "MSN=%d" or "AETH.MSN=%d", range:range(1, 3):uint())
	if s ~= 0x1f then
		say(p, "(%s)", words)
	end
	if kind == "none" then
		complain(p, e.syndrome, "Syndrome " .. hex(s, 2) .. " is not in use", item)
	elseif kind ~= "ack" and not p.op.nak then
		-- veRoCE 5.1: a SACK's syndrome has only credits; 7.4: that of a response is 0x1F.
		complain(p, e.syndrome, words .. " in a " .. p.op.name, item)
	end
end

function H.RETH(p)
	local range, tree = take(p, 16, "RDMA Header (RETH)")
	if range then
		tree:add(f.va, range:range(0, 8))
		tree:add(f.rkey, range:range(8, 4))
		p.dma_item = tree:add(f.len, range:range(12, 4))
		p.dma_len = range:range(12, 4):uint()
		say(p, "VA=0x%s len=%d", range:range(0, 8):uint64():tohex(), p.dma_len)
	end
end

function H.FETH(p)
	local range, tree = take(p, 4, "FLUSH Header (FETH)")
	if not range then
		return
	end
	local bits = range:uint()
	local sel, plt = floor(bits / 16) % 4, bits % 16
	local resv_item = tree:add(f.feth_resv, range)
	local sel_item = tree:add(f.feth_sel, range)
	local plt_item = tree:add(f.feth_plt, range)
	say(p, "flush%s%s of %s", plt % 2 == 1 and " to all" or "", floor(plt / 2) % 2 == 1 and " to persistence" or "",
		sel == 1 and "a region" or "a range")
	if bits >= 64 then
		complain(p, e.reserved, "Reserved bits are set", resv_item)
	end
	if sel > 1 then
		complain(p, e.value, "The selectivity level is not 0 or 1", sel_item)
	end
	if plt == 0 or plt > 3 then
		complain(p, e.value, "The placement type is not 1 to 3", plt_item)
	end
end

function H.ImmDt(p)
	local range, tree = take(p, 4, "Immediate Data (ImmDt)")
	if range then
		tree:add(f.immdt, range)
		say(p, "imm=%s", hex(range:uint(), 8))
	end
end

function H.IETH(p)
	local range, tree = take(p, 4, "Invalidate Header (IETH)")
	if range then
		tree:add(f.ieth_rkey, range)
		say(p, "inv=%s", hex(range:uint(), 8))
	end
end

function H.AtomicETH(p)
	local range, tree = take(p, 28, "Atomic Header (AtomicETH)")
	if range then
		tree:add(f.at_va, range:range(0, 8))
		tree:add(f.at_rkey, range:range(8, 4))
		tree:add(f.at_swap, range:range(12, 8))
		tree:add(f.at_compare, range:range(20, 8))
		say(p, "VA=0x%s", range:range(0, 8):uint64():tohex())
	end
end

function H.AtomicAckETH(p)
	local range, tree = take(p, 8, "Atomic Acknowledge Header (AtomicAckETH)")
	if range then
		tree:add(f.at_orig, range)
		say(p, "orig=0x%s", range:uint64():tohex())
	end
end

-- The PSNs start+i of the indices i in the list, as "5-6, 8", modulo 2^24.
local function psn_ranges(start, list)
	local out, i = {}, 1
	while i <= #list do
		local j = i
		while list[j + 1] == list[j] + 1 do
			j = j + 1
		end
		local a, b = (start + list[i]) % 0x1000000, (start + list[j]) % 0x1000000
		out[#out + 1] = i == j and string.format("%d", a) or string.format("%d-%d", a, b)
		i = j + 1
	end
	return #out > 0 and table.concat(out, ", ") or "none"
end

local function sack_block(p)
	local range, tree = take(p, 20, "Selective Acknowledge Header (SACKETH)")
	if not range then
		return
	end
	local len, start = range:range(0, 1):uint(), range:range(1, 3):uint()
	local len_item = tree:add(f.sack_len, range:range(0, 1))
	local psn_item = tree:add(f.sack_psn, range:range(1, 3))
	local map = range:range(4, 16)
	local map_item = tree:add(f.sack_bitmap, map)
	local set, clear, above = {}, {}, false
	for k = 0, 15 do -- bit i of the 128-bit big-endian number is PSN StartPSN+i
		local b = map:range(15 - k, 1):uint()
		for i = 8 * k, 8 * k + 7 do
			local one = b % 2 == 1
			b = floor(b / 2)
			if i >= len then
				above = above or one
			elseif one then
				set[#set + 1] = i
			else
				clear[#clear + 1] = i
			end
		end
	end
	local got, missing = psn_ranges(start, set), psn_ranges(start, clear)
	tree:add(f.sack_received, map, got):set_generated()
	tree:add(f.sack_missing, map, missing):set_generated()
	tree:append_text(string.format(", %d PSNs from %d", len, start))
	say(p, "SACK[%d+%d got %s; missing %s]", start, len, got, missing)

	if len < 1 or len > 128 then
		complain(p, e.validlen, string.format("ValidLen is %d, not 1..128", len), len_item)
	-- veRoCE 2: ValidLen = index of the highest set bit + 1, or 128 where something beyond the block has come
	elseif len < 128 and set[#set] ~= len - 1 then
		complain(p, e.unusual, "The highest valid bit is not set", len_item)
	end
	if above then
		complain(p, e.unusual, "Bits above ValidLen are set", map_item)
	end
	-- aPSN has come and aPSN+1 has not, whatever the block starts with.
	local ahead = (start - p.psn) % 0x1000000
	if ahead >= 0x800000 then
		complain(p, e.unusual, string.format("StartPSN is before aPSN %d", p.psn), psn_item)
	elseif ahead == 0 and set[1] ~= 0 then
		complain(p, e.unusual, "aPSN itself is missing", map_item)
	elseif ahead == 1 and set[1] == 0 or ahead == 0 and set[2] == 1 then
		complain(p, e.unusual, "aPSN+1 is received", map_item)
	end
end

function H.SACKETH(p)
	local blocks = 0
	repeat
		sack_block(p)
		blocks = blocks + 1
	until p.broken or p.at >= p.stop
	if blocks > MAX_BLOCKS then
		complain(p, e.length, string.format("%d SACKETH in one packet, at most %d are allowed", blocks, MAX_BLOCKS))
	end
end

local function rtt(name, zero)
	return function(p)
		local range, tree = take(p, 20, name)
		if not range then
			return
		end
		tree:add(f.rtt_context, range:range(0, 4))
		for i, key in ipairs({ "tx1", "rx1", "tx2", "rx2" }) do
			local stamp = range:range(4 * i, 4)
			local item = tree:add(f["rtt_" .. key], stamp)
			if zero[key] and stamp:uint() ~= 0 then
				complain(p, e.value, key:upper() .. " is not 0", item)
			end
		end
		say(p, "context=%s TX1=%d", hex(range:range(0, 4):uint(), 8), range:range(4, 4):uint())
	end
end

H.RTTReqETH = rtt("RTT Request Header (RTTReqETH)", { rx1 = true, tx2 = true, rx2 = true })
H.RTTRspETH = rtt("RTT Response Header (RTTRspETH)", { rx2 = true })

-- veRoCE 3: 16 zero bytes that may as well not be there.
function H.CNP(p)
	if p.at == p.stop then
		return
	end
	local range, tree = take(p, 16, "Congestion Notification")
	if range then
		local item = tree:add(f.cnp_resv, range)
		if range:raw():find("[^%z]") then
			complain(p, e.reserved, "Reserved bytes are not zero", item)
		end
	end
end

function H.SLOW(p) -- veRoCE 3: the signal is in BTH.PSN
	say(p, "slow PSN=%d", p.psn)
end

-- CAPS_SEAL: the ICRC of what is sent to an end is XORed with the nonce of that end. What CAPS tell of them, by
-- address and QPN of the end; there may have been several lives.
local told = {}

function veroce.init()
	told = {}
end

local function learn(p, qpn, nonce)
	local key = p.source .. " " .. qpn
	told[key] = told[key] or {}
	told[key][nonce] = true
end

-- The secret that makes the ICRC sent the one computed, or nothing.
local function secret_of(p, difference)
	if not p.op or p.code == 0xf0 or p.code == 0xf1 then
		return
	end
	local nonces = told[p.destination .. " " .. p.dqpn]
	if nonces and nonces[difference] then
		return difference
	end
	for text in veroce.prefs.secrets:gmatch("%x+") do
		if tonumber(text, 16) == difference then
			return difference
		end
	end
end

function H.CAPSETH(p)
	local range, tree = take(p, 32, "Capabilities Header (CAPSETH)")
	if not range then
		return
	end
	local function number(at, n)
		return range:range(at, n):uint()
	end
	local function value(field, at, n, wrong, text)
		local item = tree:add(field, range:range(at, n))
		if wrong then
			complain(p, e.value, text, item)
		end
		return item
	end
	value(f.caps_magic, 0, 4, number(0, 4) ~= 0x56525831, "The magic number is not 0x56525831")
	value(f.caps_ver, 4, 1, number(4, 1) ~= 1, "The version is not 1")
	value(f.caps_profile, 5, 1, number(5, 1) > 3, "The profile is not 0..3")
	local flags = range:range(6, 2)
	local flags_tree = tree:add(f.caps_flags, flags)
	local names = {}
	local reserved = flags:uint() >= 0x1000
	for i, key in ipairs({ "multi_sack", "ts", "pmtu8192", "trim", "rxshare", "sack_any",
		false, "seal", "alike", "large", "hold", "roam" }) do
		local set = floor(flags:uint() / 2 ^ (i - 1)) % 2 == 1
		if key then
			flags_tree:add(f["caps_" .. key], flags)
		end
		if key and set then
			names[#names + 1] = key:upper()
		end
		reserved = reserved or set and not key
	end
	local resv = flags_tree:add(f.caps_flags_resv, flags)
	if reserved then
		complain(p, e.reserved, "Reserved flags are set", resv)
	end
	value(f.caps_pmtu, 8, 1, number(8, 1) < 1 or number(8, 1) > 6, "The PMTU code is not 1..6")
	tree:add(f.caps_rxwinq, range:range(9, 3))
	tree:add(f.caps_paths, range:range(12, 1))
	tree:add(f.caps_rxwinr, range:range(13, 3))
	value(f.caps_state, 16, 1, number(16, 1) > 1, "The state is not 0 or 1")
	tree:add(f.caps_qpn, range:range(17, 3))
	tree:add(f.caps_nonce, range:range(20, 4))
	tree:add(f.caps_t, range:range(24, 2))
	tree:add(f.caps_timer, range:range(26, 2))
	tree:add(f.caps_own_nonce, range:range(28, 4))
	if p.code == 0xf1 then
		learn(p, number(17, 3), number(28, 4))
	else
		learn(p, number(17, 3), number(20, 4))
		if number(28, 4) ~= 0 then
			complain(p, e.value, "A question with the nonce of an answer")
		end
	end
	say(p, "sqpn=%s flags=%s PMTU=%s nonce=%s", hex(number(17, 3), 6),
		#names > 0 and table.concat(names, "|") or "none", PMTU_CODES[number(8, 1)] or "?", hex(number(20, 4), 8))
end

-- veRoCE 13.4: a time of 0 means that the sender goes on.
function H.HOLDETH(p)
	local range, tree = take(p, 12, "Hold Header (HOLDETH)")
	if not range then
		return
	end
	local ms, number = range:range(0, 2):uint(), range:range(2, 2):uint()
	local item = tree:add(f.hold_ms, range:range(0, 2))
	if ms > 10000 then
		complain(p, e.value, "The time is more than 10000 ms", item)
	end
	item = tree:add(f.hold_number, range:range(2, 2))
	if number == 0 then
		complain(p, e.value, "The number is 0", item)
	end
	item = tree:add(f.hold_resv, range:range(4, 1))
	if range:range(4, 1):uint() ~= 0 then
		complain(p, e.reserved, "Reserved bits are not zero", item)
	end
	tree:add(f.hold_qpn, range:range(5, 3))
	tree:add(f.hold_nonce, range:range(8, 4))
	say(p, "%s number=%d sqpn=%s", ms == 0 and "resumes" or string.format("for %d ms", ms), number,
		hex(range:range(5, 3):uint(), 6))
end

-- veRoCE 13.5: the challenge is the peer's, and a MOVED has none.
function H.ROAMETH(p)
	local range, tree = take(p, 24, "Roam Header (ROAMETH)")
	if not range then
		return
	end
	local step, number = range:range(0, 1):uint(), range:range(4, 4):uint()
	local item = tree:add(f.roam_step, range:range(0, 1))
	if not ROAM_STEPS[step] then
		complain(p, e.value, "The step is not 1..4", item)
	end
	tree:add(f.roam_qpn, range:range(1, 3))
	item = tree:add(f.roam_number, range:range(4, 4))
	if number == 0 then
		complain(p, e.value, "The number is 0", item)
	end
	local challenge = range:range(8, 4):uint() ~= 0 or range:range(12, 4):uint() ~= 0
	item = tree:add(f.roam_challenge, range:range(8, 8))
	if challenge == (step == 1) then
		complain(p, e.value, step == 1 and "A MOVED has a challenge" or "There is no challenge", item)
	end
	tree:add(f.roam_mac, range:range(16, 8))
	say(p, "%s number=%d sqpn=%s", ROAM_STEPS[step] or "?", number, hex(range:range(1, 3):uint(), 6))
end

function H.TSETH(p)
	local range, tree = take(p, 8, "Time Stamp Header (TSETH)")
	if range then
		tree:add(f.ts_tx1, range:range(0, 4))
		tree:add(f.ts_path, range:range(4, 1))
		tree:add(f.ts_seq, range:range(5, 3))
		say(p, "path=%d/%d", range:range(4, 1):uint(), range:range(5, 3):uint())
	end
end

-- With RXSHARE the header has one word more. A packet does not say whether that was agreed, but only one
-- of the two leaves a length that the rest of the headers can have.
function H.TSEETH(p)
	local rest = p.stop - p.at - 8 -- AETH, POETH
	local share
	if p.op.multi then
		share = rest >= 24 and (rest - 24) % 20 == 0
	else
		share = rest == 24
	end
	local range, tree = take(p, share and 24 or 20, "Time Stamp Echo Header (TSEETH)")
	if not range then
		return
	end
	tree:add(f.tse_tx1, range:range(0, 4))
	tree:add(f.tse_rx1, range:range(4, 4))
	tree:add(f.tse_tx2, range:range(8, 4))
	tree:add(f.tse_path, range:range(12, 1))
	tree:add(f.tse_rcv, range:range(13, 3))
	tree:add(f.tse_dups, range:range(16, 1))
	tree:add(f.tse_ce, range:range(17, 3))
	if share then
		tree:add(f.tse_share, range:range(20, 4))
	end
	if range:range(12, 1):uint() == 255 then -- echoes no packet: it is there for the share
		say(p, "share=%d", share and range:range(20, 4):uint() or 0)
	else
		say(p, "path=%d/%d", range:range(12, 1):uint(), range:range(13, 3):uint())
	end
end

---------------------------------------------------------------------------------------------------
-- Packets

for code, row in pairs(OPCODES) do
	local op = { name = row[1], space = row[2], payload = row[4], stack = {} }
	for name in row[3]:gmatch("%a+") do
		op.stack[#op.stack + 1] = assert(H[name])
	end
	op.ack = op.space == "q" or op.space == "r"
	op.data = op.space == "Q" or op.space == "R"
	op.multi = row[3]:find("SACKETH") ~= nil
	op.nak = op.ack and not op.multi
	op.write = row[1]:find("^WRITE") ~= nil
	OPCODES[code] = op
end

local function dissect_bth(p)
	local range, tree = take(p, BTH_LEN, "Base Transport Header (BTH)")
	if not range then
		return false
	end
	local function u(at, n)
		return range:range(at, n):uint()
	end
	local code = u(0, 1)
	local op = OPCODES[code]
	p.op, p.code, p.bth = op, code, tree
	p.pad = floor(u(1, 1) / 16) % 4
	p.dqpn, p.psn = u(5, 3), u(9, 3)
	p.flags = u(8, 1)
	p.becn = floor(u(4, 1) / 64) % 2 == 1

	local op_item = tree:add(f.opcode, range:range(0, 1))
	for _, key in ipairs({ "se", "migreq" }) do
		tree:add(f[key], range:range(1, 1))
	end
	p.pad_item = tree:add(f.padcnt, range:range(1, 1))
	local tver_item = tree:add(f.tver, range:range(1, 1))
	tree:add(f.pkey, range:range(2, 2))
	tree:add(f.fecn, range:range(4, 1))
	p.becn_item = tree:add(f.becn, range:range(4, 1))
	local resv6_item = tree:add(f.resv6, range:range(4, 1))
	tree:add(f.dqpn, range:range(5, 3))
	p.a_item = tree:add(f.ackreq, range:range(8, 1))
	p.r_item = tree:add(f.retrans, range:range(8, 1))
	p.t_item = tree:add(f.ts_present, range:range(8, 1))
	local resv5_item = tree:add(f.resv5, range:range(8, 1))
	tree:add(f.psn, range:range(9, 3))

	if not op then
		complain(p, e.opcode, "Opcode " .. hex(code, 2) .. " is unknown", op_item)
	end
	if u(1, 1) % 16 ~= 0 then
		complain(p, e.tver, string.format("TVer is %d, not 0", u(1, 1) % 16), tver_item)
	end
	if u(4, 1) % 64 ~= 0 then
		complain(p, e.reserved, "Reserved bits are " .. hex(u(4, 1) % 64, 2), resv6_item)
	end
	if p.flags % 32 ~= 0 then
		complain(p, e.reserved, "Reserved bits are " .. hex(p.flags % 32, 2), resv5_item)
	end

	local a, r, t = floor(p.flags / 128) % 2 == 1, floor(p.flags / 64) % 2 == 1, floor(p.flags / 32) % 2 == 1
	p.a, p.r, p.t = a, r, t
	local letters = (a and "A" or "") .. (r and "R" or "") .. (t and "T" or "")
	say(p, "dqpn=%s PSN=%d", hex(p.dqpn, 6), p.psn)
	if letters ~= "" then
		say(p, "[%s]", letters)
	end
	return true
end

local function dissect_payload(p)
	if p.broken then
		return
	end
	local left = p.stop - p.at
	local op = p.op
	if op.payload == "none" then
		if left > 0 then
			complain(p, e.length, string.format("%d bytes too many for %s", left, op.name))
		end
		if p.pad ~= 0 then
			complain(p, e.padcnt, string.format("PadCnt is %d in a packet without payload", p.pad), p.pad_item)
		end
		return
	end

	if left == 0 and p.dscp == veroce.prefs.trimmed then -- veRoCE 8: the headers still speak of the payload
		complain(p, e.trimmed, "Payload cut off by a switch")
		p.tree:add(f.payload_len, 0):set_generated()
		say(p, "[trimmed]")
		return
	end
	if left % 4 ~= 0 then
		complain(p, e.length, string.format("Payload and pad have %d bytes, not a multiple of 4", left))
	end
	local len = left - p.pad
	if left == 0 and p.pad ~= 0 then
		complain(p, e.padcnt, string.format("PadCnt is %d in a packet without payload", p.pad), p.pad_item)
		len = 0
	elseif len < 0 then
		complain(p, e.length, string.format("PadCnt is %d, but only %d bytes are left", p.pad, left), p.pad_item)
		return
	end
	if op.payload == "full" and not PMTUS[len] then
		complain(p, e.length, string.format("Payload of %s has %d bytes, which is no PMTU", op.name, len))
	elseif op.payload == "some" and len == 0 then
		complain(p, e.length, op.name .. " without payload")
	elseif len > MAX_PMTU then
		complain(p, e.length, string.format("Payload has %d bytes, more than the largest PMTU", len))
	end
	if op.write and p.dma_len ~= len then -- veRoCE 3; receivers do not use it
		complain(p, e.unusual, string.format("DMA length is %d, but the payload has %d bytes", p.dma_len, len), p.dma_item)
	end

	local have = math.min(len, p.captured - p.at)
	if have > 0 then
		p.tree:add(f.payload, p.tvb:range(p.at, have))
	end
	p.tree:add(f.payload_len, len):set_generated()
	say(p, "%d bytes", len)
	p.at = p.at + len
	if left > len and p.at + left - len <= p.captured then
		local pad = p.tvb:range(p.at, left - len)
		local item = p.tree:add(f.pad, pad)
		if pad:raw():find("[^%z]") then
			complain(p, e.pad, "Pad bytes are not zero", item)
		end
	end
	p.at = p.stop
end

-- What the headers say together.
local function check_meaning(p)
	local op = p.op
	if op.ack then
		if p.a then -- veRoCE 5.2: acknowledgements are neither acknowledged nor retransmitted
			complain(p, e.value, "AckReq in an acknowledgement", p.a_item)
		end
		if p.r then
			complain(p, e.value, "Retransmission of an acknowledgement", p.r_item)
		end
		if p.kind == "nak" or p.kind == "rnr" then -- veRoCE 5.2
			if p.po and p.po ~= NO_PO then
				complain(p, e.value, string.format("PO of a NAK is %d, not 0xffffff", p.po), p.po_item)
			end
			if p.becn then
				complain(p, e.value, "BECN in a NAK", p.becn_item)
			end
		end
	elseif p.po == NO_PO then
		complain(p, e.value, "PO 0xffffff outside an acknowledgement", p.po_item)
	elseif p.po == 0 and op.data and not op.name:find("Middle") then -- veRoCE 2: it cannot be the first packet
		complain(p, e.value, "PO of " .. op.name .. " is 0", p.po_item)
	end
end

local function check_lower(p, ip, version)
	if p.source_port < 49152 then -- veRoCE 1
		complain(p, e.unusual, string.format("UDP source port %d is not in 49152..65535", p.source_port))
	end
	if version == 4 and floor(byte(ip, 7) / 64) % 2 == 0 then
		complain(p, e.unusual, "DF is not set")
	end
end

local function dissect_icrc(p, ip, udp)
	if p.stop < 0 or p.stop + ICRC_LEN > p.captured then
		return
	end
	local range = p.tvb:range(p.stop, ICRC_LEN)
	local sent = range:le_uint() -- veRoCE 1.1: least significant byte first
	local item = p.tree:add_le(f.icrc, range)
	local status = 2
	if ip and p.stop >= BTH_LEN and veroce.prefs.icrc then
		local computed = icrc_of(ip, udp, p.tvb:range(0, p.stop):raw())
		local difference = bxor(computed, sent) % WORD
		local secret = difference ~= 0 and secret_of(p, difference)
		status = (difference == 0 or secret) and 1 or 0
		p.tree:add(f.icrc_computed, range, computed):set_generated()
		if secret then
			p.tree:add(f.icrc_secret, range, secret):set_generated()
		end
		if status == 0 then
			complain(p, e.icrc, string.format("ICRC is %s, should be %s", hex(sent, 8), hex(computed, 8)), item)
			say(p, "[bad ICRC]")
		end
	end
	p.tree:add(f.icrc_status, range, status):set_generated()
end

-- The name of an acknowledgement depends on its syndrome, as NAK and ACK share an opcode.
local function title(p)
	local name = p.op.name
	if p.op.nak and p.kind == "rnr" then
		return (name:gsub("ACK", "RNR NAK"))
	elseif p.op.nak and p.kind == "nak" then
		return (name:gsub("ACK", "NAK"))
	end
	return name
end

function veroce.dissector(tvb, pinfo, root)
	local port = veroce.prefs.port
	-- The table of UDP ports asks for either port; veRoCE is known by the destination.
	if pinfo.src_port == port and pinfo.dst_port ~= port then
		return 0
	end
	-- What an ICMP error quotes is neither whole nor under way.
	if icmp4_field() or icmp6_field() then
		return 0
	end

	local total, captured = tvb:reported_len(), tvb:len()
	pinfo.cols.protocol:set("veRoCE")
	pinfo.cols.info:set("")
	local tree = captured > 0 and root:add(veroce, tvb:range(0, captured)) or root:add(veroce)
	local p = { tvb = tvb, tree = tree, at = 0, stop = total - ICRC_LEN, captured = captured, info = {},
		source_port = pinfo.src_port, source = tostring(pinfo.src), destination = tostring(pinfo.dst) }
	local name = "Malformed"
	local ip, udp, version = lower_headers(tvb)

	if ip then -- ToS or traffic class, less ECN
		p.dscp = floor((version == 4 and byte(ip, 2) or (byte(ip, 1) * 256 + byte(ip, 2)) / 16 % 256) / 4)
	end
	if captured < total then
		complain(p, e.cut, string.format("Only %d of %d bytes were captured", captured, total))
	end
	if dissect_bth(p) then
		local op = p.op
		if op then
			if op.data or op.ack then
				p.bth:add(f.space, p.tvb:range(9, 3), SPACES[op.space]):set_generated()
			end
			if p.t then -- veRoCE 13.2: directly after BTH
				if op.data then
					H.TSETH(p)
				elseif op.ack then
					H.TSEETH(p)
				else
					complain(p, e.ts, "T is set in a " .. op.name, p.t_item)
				end
			end
			for _, header in ipairs(op.stack) do
				header(p)
			end
			dissect_payload(p)
			check_meaning(p)
			name = title(p)
		else
			name = "Unknown opcode " .. hex(p.code, 2)
		end
		if ip then
			check_lower(p, ip, version)
		end
	end
	if p.at < p.stop and p.at < captured then
		tree:add(f.extra, tvb:range(p.at, math.min(p.stop, captured) - p.at))
	end
	dissect_icrc(p, ip, udp)

	local info = name .. (#p.info > 0 and " " .. table.concat(p.info, " ") or "")
	tree:append_text(", " .. info)
	pinfo.cols.info:set(info)
	return total
end

---------------------------------------------------------------------------------------------------

local ports = DissectorTable.get("udp.port")
local registered

local function register()
	if registered ~= veroce.prefs.port then
		if registered then
			ports:remove(registered, veroce)
		end
		registered = veroce.prefs.port
		ports:add(registered, veroce)
	end
end

veroce.prefs_changed = register
register()
