/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings: which values are accepted, which source wins, and that every error names the mistake. */
#include "engine/config.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

extern char **environ;

static char file[] = "/tmp/verbena-config-XXXXXX";

static int load(struct config *c, char *variable, const char *text, char err[1024])
{
	char config[sizeof(file) + 32];
	char *env[3] = {variable, NULL, NULL}, **saved = environ;
	FILE *f;
	int rc;

	if (text) {
		f = fopen(file, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
		snprintf(config, sizeof(config), "VERBENA_CONFIG=%s", file);
		env[variable ? 1 : 0] = config;
	}
	environ = env;
	err[0] = 0;
	rc = config_load(c, err, 1024);
	environ = saved;
	return rc;
}

/* The configuration that results; the setting must be accepted. */
static struct config loaded(char *variable, const char *text)
{
	struct config c;
	char err[1024];

	if (load(&c, variable, text, err))
		fail_msg("%s, %s: %s", variable ? variable : "", text ? text : "", err);
	return c;
}

TEST(without_settings_there_are_defaults)
{
	struct config c = loaded(NULL, NULL);

	assert_int_equal(c.transport.rocev2.port, 4791);
	assert_int_equal(c.transport.veroce.port, 4794);
	assert_int_equal(c.transport.paths, 16);
	assert_int_equal(c.transport.protocol, PROTOCOL_AUTO);
	assert_false(c.cc.given);
	assert_int_equal(c.transport.cc.line_rate_bps, 0);
	assert_int_equal(c.transport.veroce.loss, LOSS_FAST);
	assert_int_equal(c.transport.veroce.scope, SCOPE_HOSTS);
	assert_int_equal(c.transport.veroce.rx_window, 65536);
	assert_int_equal(c.transport.veroce.order, ORDER_MESSAGE);
	assert_int_equal(c.transport.veroce.fence_indicator, 0);
	assert_int_equal(c.transport.veroce.seal, SEAL_ON);
	assert_int_equal(c.transport.veroce.roam, ROAM_OFF);
	assert_int_equal(c.transport.veroce.trim, 0);
	assert_int_equal(c.transport.patience_ns, UINT64_C(5000000000));
	assert_int_equal(c.spin_us, 50);
	assert_true(c.shm);
	assert_int_equal(c.shm_bytes, 0);
	assert_int_equal(c.transport.rocev2.only_bytes, 65536);
	assert_int_equal(c.devices.count, 1);
	assert_int_equal(c.transport.window_bytes, 0);
	assert_string_equal(c.pcap, "");
	assert_string_equal(c.impair, "");
	assert_string_equal(c.interfaces, "");
}

static const char two_devices[] = "port = 5000\nspin_us = 7\n"
				  "[vf1]\nport = 5001\naddress = 10.0.0.1\n"
				  "[vf2]\nport = 5002\naddress = 10.0.0.2\n";

TEST(limits_are_read_and_the_device_has_no_more)
{
	struct config c = loaded("VERBENA_RATE=2Gbps",
				 "burst = 128K\nweight = 3\nquota = qps=10, mr_bytes=4G\npkeys = 0x8003, 0x7\n");

	assert_int_equal(c.limits.rate_bps, 2000000000);
	assert_int_equal(c.limits.burst_bytes, 128 << 10);
	assert_int_equal(c.limits.weight, 3);
	assert_int_equal(c.limits.quota[LIMIT_MR_BYTES], UINT64_C(4) << 30);
	assert_int_equal(c.profile.max[PROFILE_QP], 10);
	assert_int_equal(c.profile.max[PROFILE_CQ], NIC_MAX_CQ);
	assert_int_equal(c.pkeys[0], 0x8003);
	assert_int_equal(c.pkeys[1], 7);
	assert_int_equal(c.pkeys[2], 0);
	c = loaded(NULL, NULL);
	assert_false(limits_are_given(&c.limits));
	assert_int_equal(c.pkeys[0], 0xffff);
	assert_int_equal(c.pkeys[1], 0);
}

TEST(a_virtual_device_has_its_sections_settings)
{
	struct config c = loaded("VERBENA_DEVICE=vf2", two_devices);

	assert_string_equal(c.device, "vf2");
	assert_int_equal(c.transport.rocev2.port, 5002);
	assert_int_equal(c.spin_us, 7);
	assert_string_equal(c.address, "10.0.0.2");
	c = loaded(NULL, two_devices);
	assert_string_equal(c.device, "");
	assert_int_equal(c.transport.rocev2.port, 5000);
	assert_string_equal(c.address, "");
	c = loaded(NULL, "device = vf1\n[vf1]\nport = 5001\n");
	assert_string_equal(c.device, "vf1");
	assert_int_equal(c.transport.rocev2.port, 5001);
	assert_string_equal(loaded("VERBENA_DEVICE=any-name_1", "port = 1\n").device, "any-name_1");
}

TEST(a_device_without_a_section_is_told_which_there_are)
{
	struct config c;
	char err[1024];

	assert_int_equal(load(&c, "VERBENA_DEVICE=vf3", two_devices, err), -EINVAL);
	assert_non_null(strstr(err, "VERBENA_DEVICE=vf3: /tmp/verbena-config-"));
	assert_non_null(strstr(err, " has no such section; there are: vf1, vf2"));
}

TEST(the_environment_wins_over_the_file)
{
	struct config c;
	char err[1024];

	assert_int_equal(load(&c, "VERBENA_PORT=5000",
			      "; a comment\n# another\n\nport = 6000\nwindow_bytes = 2M\nshm = off\nshm_bytes = 128K\n"
			      "pcap = /tmp/%p.pcap ; why not\nimpair = drop=0.01,seed=7\n",
			      err),
			 0);
	assert_int_equal(c.transport.rocev2.port, 5000);
	assert_int_equal(c.transport.window_bytes, 2 << 20);
	assert_false(c.shm);
	assert_int_equal(c.shm_bytes, 128 << 10);
	assert_string_equal(c.pcap, "/tmp/%p.pcap");
	assert_string_equal(c.impair, "drop=0.01,seed=7");
}

/* What is captured or spoiled is what a network would have. Streams and Ethernet frames have neither. */
TEST(who_gets_large_packets_and_memory)
{
	static const struct {
		const char *text;
		bool large, shm;
	} rows[] = {
		{"port = 5000\n", true, true},          {"shm = off\n", true, false},
		{"pcap = /tmp/a.pcap\n", false, false}, {"impair = drop=0.01\n", false, false},
		{"protocol = iwarp\n", false, false},   {"protocol = rocev1\n", false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c = loaded(NULL, rows[i].text);

		assert_int_equal(config_has_large(&c), rows[i].large);
		assert_int_equal(config_has_shm(&c), rows[i].shm);
	}
}

TEST(choices_are_taken_by_name)
{
	static const struct {
		const char *text;
		enum protocol protocol;
		enum cc_algorithm cc;
		enum veroce_loss loss;
		enum rx_order order;
		uint32_t rx_window;
		uint32_t veroce_paths;
	} rows[] = {
		{"protocol = auto\ncc = swift\nloss = fast\norder = message\nrx_window = 65536\n"
		 "veroce_paths = 16\ncc_scope = hosts\n",
		 PROTOCOL_AUTO, CC_SWIFT, LOSS_FAST, ORDER_MESSAGE, 65536, 16},
		{"protocol = veroce\ncc = dctcp\nloss = base\nrx_window = 128\nveroce_paths = 1\n"
		 "order = strong\ntrim = on\ncc_scope = path\n"
		 "fence_indicator = on\niwarp_crc = off\niwarp_markers = on\niwarp_rfc7306 = on\n",
		 PROTOCOL_VEROCE, CC_DCTCP, LOSS_BASE, ORDER_STRONG, 128, 1},
		{"protocol = rocev2\ncc = none\nloss = irn\norder = weak\nrx_window = 4096\n"
		 "veroce_paths = 7\ncc_scope = qp\n",
		 PROTOCOL_ROCEV2, CC_NONE, LOSS_IRN, ORDER_WEAK, 4096, 7},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c = loaded(NULL, rows[i].text);

		assert_int_equal(c.transport.protocol, rows[i].protocol);
		assert_true(c.cc.given);
		assert_int_equal(c.cc.params.algorithm, rows[i].cc);
		assert_int_equal(c.transport.veroce.loss, rows[i].loss);
		assert_int_equal(c.transport.veroce.scope, i);
		assert_int_equal(c.transport.veroce.rx_window, rows[i].rx_window);
		assert_int_equal(c.transport.paths, rows[i].veroce_paths);
		assert_int_equal(c.transport.veroce.order, rows[i].order);
		assert_int_equal(c.transport.veroce.trim, i == 1);
		assert_int_equal(c.iwarp_crc, i != 1);
		assert_int_equal(c.iwarp_markers, i == 1);
		assert_int_equal(c.transport.iwarp_rfc7306, i == 1);
		assert_int_equal(c.transport.veroce.fence_indicator, i == 1);
	}
}

TEST(the_port_of_veroce_follows_the_other)
{
	static const struct {
		char *variable;
		const char *text;
		uint16_t port, veroce_port;
	} rows[] = {
		{"VERBENA_PORT=5000", "", 5000, 5003},
		{"VERBENA_PORT=65532", "", 65532, 65535},
		{"VERBENA_PORT=65533", "", 65533, 65530},
		{"VERBENA_PORT=65535", "", 65535, 65532},
		{"VERBENA_VEROCE_PORT=5000", "", 4791, 5000},
		{"VERBENA_VEROCE_PORT=auto", "veroce_port = 5000\n", 4791, 4794},
		{"VERBENA_PORT=5000", "veroce_port = 4791\n", 5000, 4791},
		{"VERBENA_VEROCE_PORT=4791", "port = 4794\n", 4794, 4791},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c = loaded(rows[i].variable, rows[i].text);

		assert_int_equal(c.transport.rocev2.port, rows[i].port);
		assert_int_equal(c.transport.veroce.port, rows[i].veroce_port);
	}
}

TEST(good_values_are_taken)
{
	static char *const good[] = {
		"VERBENA_PORT=1",
		"VERBENA_PORT=65535",
		"VERBENA_WINDOW_BYTES=4096",
		"VERBENA_WINDOW_BYTES=4k",
		"VERBENA_WINDOW_BYTES=1G",
		"VERBENA_WINDOW_BYTES=auto",
		"VERBENA_ACK_DELAY_US=0",
		"VERBENA_CC=auto",
		"VERBENA_CC=dcqcn_fw:connectx,rate_ai=10Mbps",
		"VERBENA_LINE_RATE=auto",
		"VERBENA_LINE_RATE=100M",
		"VERBENA_IMPAIR=",
		"VERBENA_SYSFS=/whatever",
		"VERBENA_SYSFS_USE=200",
		"VERBENA_HEIR=whoever",
		"VERBENA_PATHS=1",
		"VERBENA_QUIET=1",
		"VERBENACLE=no prefix of ours",
		"OTHER=1",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		loaded(good[i], NULL);
}

TEST(a_line_rate_has_a_unit)
{
	static const struct {
		char *variable;
		uint64_t bps;
	} rows[] = {
		{"VERBENA_LINE_RATE=25Gbps", 25000000000},  {"VERBENA_LINE_RATE=25G", 25000000000},
		{"VERBENA_LINE_RATE=1Mbps", 1000000},       {"VERBENA_LINE_RATE=2500M", 2500000000},
		{"VERBENA_LINE_RATE=1000G", 1000000000000}, {"VERBENA_LINE_RATE=2.5Gbit/s", 2500000000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c = loaded(rows[i].variable, NULL);

		assert_int_equal(c.transport.cc.line_rate_bps, rows[i].bps);
	}
}

/* Its equals signs and colons are the value's, not the file's. */
TEST(congestion_control_is_read_from_the_file_too)
{
	struct config c;
	char err[1024];

	if (load(&c, NULL, "cc = dcqcn:paper,t_cnp=10us ; comment\nline_rate = 40Gbps\n", err))
		fail_msg("%s", err);
	assert_true(c.cc.given);
	assert_int_equal(c.cc.params.algorithm, CC_DCQCN);
	assert_int_equal(c.cc.params.dcqcn.t_cnp_ns, 10000);
	assert_int_equal(c.transport.cc.line_rate_bps, 40000000000);
	assert_int_equal(load(&c, NULL, "\ncc = hpcc\n", err), -EINVAL);
	assert_non_null(strstr(err, ":2: cc = hpcc: hpcc needs telemetry"));
	c = loaded("VERBENA_CC=auto", "cc = dcqcn\n");
	assert_false(c.cc.given);
}

TEST(each_device_has_its_kind)
{
	static const struct {
		char *devices;
		const char *protocol;
		uint32_t count, iwarp; /* 0: they cannot be had */
	} rows[] = {
		{"VERBENA_DEVICES=3", "protocol = auto\n", 3, 0},
		{"VERBENA_DEVICES=3", "protocol = iwarp\n", 3, 7},
		{"VERBENA_DEVICES=roce", "protocol = veroce\n", 1, 0},
		{"VERBENA_DEVICES=iwarp", "protocol = rocev1\n", 1, 1},
		{"VERBENA_DEVICES=iwarp,roce", "protocol = auto\n", 2, 1},
		{"VERBENA_DEVICES=roce,iwarp,roce,roce,roce,roce,roce,iwarp", "protocol = rocev2\n", 8, 0x82},
		{"VERBENA_DEVICES=iwarp,iwarp", "protocol = iwarp\n", 2, 3},
		{"VERBENA_DEVICES=iwarp,roce", "protocol = iwarp\n", 0, 0},
	};
	struct config c;
	char err[1024];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(load(&c, rows[i].devices, rows[i].protocol, err), rows[i].count ? 0 : -EINVAL);
		if (!rows[i].count) {
			assert_non_null(strstr(err, "VERBENA_DEVICES that names roce"));
			continue;
		}
		assert_int_equal(c.devices.count, rows[i].count);
		assert_int_equal(c.devices.iwarp, rows[i].iwarp);
	}
}

TEST(bad_variables_are_named)
{
	static const struct {
		char *variable;
		const char *told;
	} bad[] = {
		{"VERBENA_PROT=4791", "VERBENA_PROT=4791: no such setting; there are: VERBENA_PCAP, "},
		{"VERBENA_port=4791", "VERBENA_port=4791: no such setting"},
		{"VERBENA_=1", "VERBENA_=1: no such setting"},
		{"VERBENA_PORT=", "VERBENA_PORT=: allowed is a whole number from 1 to 65535"},
		{"VERBENA_PORT=0", "VERBENA_PORT=0: allowed is"},
		{"VERBENA_PORT=65536", "VERBENA_PORT=65536: allowed is"},
		{"VERBENA_PORT=-1", "VERBENA_PORT=-1: allowed is"},
		{"VERBENA_PORT= 1", "VERBENA_PORT= 1: allowed is"},
		{"VERBENA_PORT=1 ", "VERBENA_PORT=1 : allowed is"},
		{"VERBENA_PORT=1K", "VERBENA_PORT=1K: allowed is"},
		{"VERBENA_PORT=0x10", "VERBENA_PORT=0x10: allowed is"},
		{"VERBENA_PORT=99999999999999999999", "allowed is"},
		{"VERBENA_WINDOW_BYTES=4095", "K, M or G may follow it; or auto"},
		{"VERBENA_WINDOW_BYTES=2G", "allowed is"},
		{"VERBENA_WINDOW_BYTES=0", "allowed is"},
		{"VERBENA_PORT=auto", "allowed is"},
		{"VERBENA_WINDOW_BYTES=64KB", "allowed is"},
		{"VERBENA_WINDOW_BYTES=4294967295G", "allowed is"},
		{"VERBENA_PROTOCOL=iwar", "VERBENA_PROTOCOL=iwar: allowed is auto, veroce, rocev2, iwarp or rocev1"},
		{"VERBENA_PROTOCOL=", "VERBENA_PROTOCOL=: allowed is"},
		{"VERBENA_PROTOCOL=AUTO", "allowed is"},
		{"VERBENA_PROTOCOL=auto ", "allowed is"},
		{"VERBENA_CC=cubic",
		 "VERBENA_CC=cubic: no congestion control 'cubic'; allowed is one of auto, none, swift, "},
		{"VERBENA_CC=dcqcn,g=7", "VERBENA_CC=dcqcn,g=7: g=7: allowed is a ratio such as "},
		{"VERBENA_LINE_RATE=0",
		 "VERBENA_LINE_RATE=0: allowed is a rate from 1Mbps to 1000Gbps, with its unit, or auto"},
		{"VERBENA_LINE_RATE=0Gbps", "allowed is"},
		{"VERBENA_LINE_RATE=10", "allowed is"},
		{"VERBENA_LINE_RATE=10gbps", "allowed is"},
		{"VERBENA_LINE_RATE=1001Gbps", "allowed is"},
		{"VERBENA_LINE_RATE=18446744073709551615G", "allowed is"},
		{"VERBENA_LINE_RATE=-1G", "allowed is"},
		{"VERBENA_RATE=0", "VERBENA_RATE=0: allowed is a rate from 1Mbps to 1000Gbps, with its unit, or none"},
		{"VERBENA_WEIGHT=1001", "VERBENA_WEIGHT=1001: allowed is a whole number from 0 to 1000"},
		{"VERBENA_QUOTA=qps=0", "VERBENA_QUOTA=qps=0: 'qps=0': allowed is a whole number from 1"},
		{"VERBENA_PKEYS=0x8000", "VERBENA_PKEYS=0x8000: allowed are 1 to 8 numbers from 0x1 to 0xffff"},
		{"VERBENA_PKEYS=", "VERBENA_PKEYS=: allowed are"},
		{"VERBENA_PKEYS=1", "VERBENA_PKEYS=1: allowed are"},
		{"VERBENA_PKEYS=0x+1", "VERBENA_PKEYS=0x+1: allowed are"},
		{"VERBENA_PKEYS=0x8003,0x3", "of which no two are equal"},
		{"VERBENA_PKEYS=0x1,0x2,0x3,0x4,0x5,0x6,0x7,0x8,0x9", "allowed are 1 to 8"},
		{"VERBENA_DEVICE=1vf", "VERBENA_DEVICE=1vf: allowed are at most 23 letters, digits, _ and -"},
		{"VERBENA_DEVICE=vf.1", "VERBENA_DEVICE=vf.1: allowed"},
		{"VERBENA_DEVICE=abcdefghijklmnopqrstuvwx", "allowed are at most 23"},
		{"VERBENA_DEVICES=0", "VERBENA_DEVICES=0: allowed is a whole number from 1 to 8"},
		{"VERBENA_DEVICES=9", "VERBENA_DEVICES=9: allowed is"},
		{"VERBENA_DEVICES=two", "VERBENA_DEVICES=two: 'two' is no device; allowed is"},
		{"VERBENA_DEVICES=roce,", "VERBENA_DEVICES=roce,: device 2 of the list is missing; allowed is"},
		{"VERBENA_DEVICES=", "VERBENA_DEVICES=: allowed is"},
		{"VERBENA_DEVICES=roc", "allowed is"},
		{"VERBENA_DEVICES=roce,iwarps", "allowed is"},
		{"VERBENA_DEVICES=roce,roce,roce,roce,roce,roce,roce,roce,iwarp", "allowed is"},
		{"VERBENA_LOSS=sr", "VERBENA_LOSS=sr: allowed is fast, base or irn"},
		{"VERBENA_FENCE_INDICATOR=yes", "VERBENA_FENCE_INDICATOR=yes: allowed is off or on"},
		{"VERBENA_SEAL=1", "VERBENA_SEAL=1: allowed is on or off"},
		{"VERBENA_ROAM=on", "VERBENA_ROAM=on: allowed is off or unsafe"},
		{"VERBENA_VEROCE_PORT=0", "VERBENA_VEROCE_PORT=0: allowed is a whole number from 1 to 65535, or auto"},
		{"VERBENA_VEROCE_PORT=4791",
		 "VERBENA_VEROCE_PORT=4791: allowed is any port but 4791, which is RoCEv2's"},
		{"VERBENA_VEROCE_PATHS=0", "VERBENA_VEROCE_PATHS=0: allowed is a whole number from 1 to 16"},
		{"VERBENA_VEROCE_PATHS=17", "allowed is"},
		{"VERBENA_RX_WINDOW=64", "VERBENA_RX_WINDOW=64: allowed is a power of two from 128 to 65536"},
		{"VERBENA_RX_WINDOW=129", "allowed is"},
		{"VERBENA_RX_WINDOW=131072", "allowed is"},
		{"VERBENA_RX_WINDOW=1K", "allowed is"},
		{"VERBENA_IMPAIR=drop=2", "VERBENA_IMPAIR=drop=2: "},
		{"VERBENA_IMPAIR=dorp=0.1", "dorp"},
	};
	struct config c;
	char err[1024], saved;

	memset(&c, 0x5a, sizeof(c));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load(&c, bad[i].variable, NULL, err), -EINVAL);
		if (!strstr(err, bad[i].told))
			fail_msg("%s: told '%s', not '%s'", bad[i].variable, err, bad[i].told);
	}
	memcpy(&saved, &c, 1);
	assert_int_equal(saved, 0x5a); /* untouched on failure */
}

TEST(bad_files_are_named_with_the_line)
{
	char longer[400] = "port = 1\npcap = ";
	const struct {
		const char *text;
		const char *told;
	} bad[] = {
		{"port = 70000\n", ":1: port = 70000: allowed is a whole number from 1 to 65535"},
		{"\nprot = 1\n", ":2: prot = 1: no such setting; there are: pcap, "},
		{"PORT = 1\n", ":1: PORT = 1: no such setting"},
		{"port = 1\nspin_us = 1\nport = 2\n", ":3: port: given twice"},
		{"port = 1\nnonsense\n", ":2: not of the form key = value"},
		{"nonsense\nport = 0\n", ":1: not of the form key = value"},
		{"[nic 1]\nport = 1\n",
		 ":2: section [nic 1]: it is a virtual device's, and in its name allowed are at most 23"},
		{"[nic]\nports = 1\n", ":2: ports = 1: no such setting"},
		{"[nic]\ndevice = nic\n", ":2: device: not in a section"},
		{"device = vf1\n[vf1]\nport = 1\nport = 1\n", ":4: port: given twice"},
		{"device = vf1\n[vf1]\nport = none\n", ":3: port = none: allowed is"},
		{"device = vf1\n[vf1]\naddress = 10.0.0.1,10.0.0.2\n[vf2]\naddress = fd00::1,10.0.0.2\n",
		 ":5: address = 10.0.0.2: it is of both vf2 and vf1"},
		{"port = 1\nimpair = drop=x\n", ":2: impair = drop=x: "},
		{"cc_scope = pair\n", ":1: cc_scope = pair: allowed is hosts, path or qp"},
		{"loss = none\n", ":1: loss = none: allowed is fast, base or irn"},
		{"veroce_port = 7\nport = 7\n", ":1: veroce_port = 7: allowed is any port but 7, which is RoCEv2's"},
		{longer, ":2: longer than"},
	};
	struct config c;
	char err[1024];

	memset(longer + strlen(longer), 'x', sizeof(longer) - strlen(longer) - 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load(&c, NULL, bad[i].text, err), -EINVAL);
		if (!strstr(err, bad[i].told) || strncmp(err, file, strlen(file)))
			fail_msg("%s: told '%s', not '%s'", bad[i].text, err, bad[i].told);
	}
}

TEST(a_file_that_is_not_there_is_an_error)
{
	struct config c;
	char err[1024];

	assert_int_equal(load(&c, "VERBENA_CONFIG=/does/not/exist", NULL, err), -EINVAL);
	assert_non_null(strstr(err, "VERBENA_CONFIG=/does/not/exist: cannot open it"));
}

/* Loads with a profile's file and one more variable, or none. */
static int load_profile(struct config *c, char *variable, const char *text, char err[1024])
{
	char profile[sizeof(file) + 32];
	char *env[3] = {profile, variable, NULL}, **saved = environ;
	FILE *f = fopen(file, "w");
	int rc;

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	snprintf(profile, sizeof(profile), "VERBENA_PROFILE=%s", file);
	environ = env;
	err[0] = 0;
	rc = config_load(c, err, 1024);
	environ = saved;
	return rc;
}

TEST(profile_sets_limits_and_settings_that_are_not_given)
{
	struct config c;
	char err[1024];

	assert_int_equal(load_profile(&c, "VERBENA_ORDER=strong",
				      "# small\nmax_qp = 10\nqp_types = uc ud\norder = weak\nport = 5000\n", err),
			 0);
	assert_int_equal(c.profile.max[PROFILE_QP], 10);
	assert_int_equal(c.profile.set[PROFILE_QP_TYPES], 1u << PROFILE_UC | 1u << PROFILE_UD);
	assert_int_equal(c.transport.veroce.order, ORDER_STRONG);
	assert_int_equal(c.transport.rocev2.port, 5000);
	assert_int_equal(c.transport.veroce.port, 5003);
}

TEST(every_shipped_profile_is_right)
{
	char names[256], err[1024], variable[300];
	struct config c;

	profile_names(names, sizeof(names));
	for (char *name = strtok(names, ", "); name; name = strtok(NULL, ", ")) {
		snprintf(variable, sizeof(variable), "VERBENA_PROFILE=%s", name);
		if (load(&c, variable, NULL, err))
			fail_msg("%s", err);
	}
	assert_int_equal(load(&c, NULL, "profile = uc-only\n", err), 0);
	assert_int_equal(c.profile.max[PROFILE_QP], 10);
	assert_int_equal(load(&c, "VERBENA_PROFILE=unordered", "order = message\n", err), 0);
	assert_int_equal(c.transport.veroce.order, ORDER_MESSAGE);
}

TEST(bad_profiles_are_named_with_the_line)
{
	static const struct {
		const char *text;
		const char *words[2];
	} rows[] = {
		{"max_qp = 10\nmax_qp = 11\n", {":2: max_qp", "twice"}},
		{"max_qp = 0\n", {":1: max_qp = 0", "from 1 to"}},
		{"\nqp_types = raw\n", {":2: qp_types = raw", "rc, uc, ud, xrc"}},
		{"max_cats = 1\n", {":1: max_cats = 1: no such key", "max_qp_wr"}},
		{"port = 0\n", {":1: port = 0", "1 to 65535"}},
		{"port = 1\nport = 2\n", {":2: port", "twice"}},
		{"profile = rxe\n", {":1: profile = rxe", "no such key"}},
		{"[device]\nmax_qp = 1\n", {":2: section", "device"}},
		{"max_qp\n", {":1:", "key = value"}},
	};
	struct config c;
	char err[1024];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(load_profile(&c, NULL, rows[i].text, err), -EINVAL);
		for (int k = 0; k < 2; k++) {
			if (!strstr(err, rows[i].words[k]) || !strstr(err, file))
				fail_msg("no \"%s\" in: %s", rows[i].words[k], err);
		}
	}
	assert_int_equal(load(&c, "VERBENA_PROFILE=cx7", NULL, err), -EINVAL);
	assert_non_null(strstr(err, "PROFILE=cx7"));
	assert_non_null(strstr(err, "uc-only"));
	assert_int_equal(load(&c, "VERBENA_PROFILE=/nonexistent/x", NULL, err), -EINVAL);
	assert_non_null(strstr(err, "cannot open"));
}

TEST(help_has_every_key)
{
	static const char *const keys[] = {"PCAP",         "IMPAIR",    "INTERFACES", "PORT",        "WINDOW_BYTES",
					   "ACK_DELAY_US", "SPIN_US",   "PROTOCOL",   "VEROCE_PORT", "VEROCE_PATHS",
					   "CC",           "LINE_RATE", "LOSS",       "RX_WINDOW",   "FENCE_INDICATOR",
					   "SEAL",         "DEVICES",   "ADDRESS"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_non_null(strstr(config_help(), keys[i]));
}

static int make_file(void **state)
{
	int fd = mkstemp(file);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(file);
}

TEST_PROGRAM(make_file, remove_file)
