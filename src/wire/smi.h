/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What subnet managers and agents say of nodes and ports: NodeInfo, SwitchInfo and PortInfo (IBTA 14.2.5). Each is the
 * 64 bytes of an SMP's attribute; offsets are from its first byte, and bits of a byte are named from the highest on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum node_type { NODE_CA = 1, NODE_SWITCH = 2, NODE_ROUTER = 3 };

/*
 * NodeInfo (14.2.5.3)
 *   0 base version | class version | node type | ports
 *   4 system image GUID; 12 node GUID; 20 port GUID (8 bytes each)
 *  28 partition cap:16 | device id:16
 *  32 revision
 *  36 local port:8 | vendor id:24
 */
struct node_info {
	uint8_t base_version;
	uint8_t class_version;
	uint8_t type; /* enum node_type */
	uint8_t ports;
	uint64_t system_guid;
	uint64_t node_guid;
	uint64_t port_guid; /* of a switch: of its port 0 */
	uint16_t partition_cap;
	uint16_t device_id;
	uint32_t revision;
	uint8_t local_port; /* that the question came in by */
	uint32_t vendor_id; /* 24 bits */
};

/*
 * SwitchInfo (14.2.5.4)
 *   0 linear FDB cap | random FDB cap | multicast FDB cap | linear FDB top (16 bits each)
 *   8 default port | default multicast primary port | default multicast not primary port
 *  11 life time:5 | port state change:1 | optimized SL-to-VL mapping:2
 *  12 LIDs per port:16 | partition enforcement cap:16
 *  16 capabilities, enhanced port 0 among them:8 | reserved:8 | multicast FDB top:16
 */
struct switch_info {
	uint16_t linear_cap;
	uint16_t random_cap;
	uint16_t multicast_cap;
	uint16_t linear_top;
	uint8_t default_port;
	uint8_t default_primary;
	uint8_t default_not_primary;
	uint8_t life_time; /* 5 bits */
	bool state_change;
	uint8_t optimized_sl_to_vl; /* 2 bits */
	uint16_t lids_per_port;
	uint16_t partition_cap;
	uint8_t flags;
	uint16_t multicast_top;
};

enum port_state { PORT_NO_CHANGE, PORT_DOWN, PORT_INIT, PORT_ARMED, PORT_ACTIVE };
enum port_phys_state { PORT_PHYS_POLLING = 2, PORT_PHYS_DISABLED = 3, PORT_PHYS_LINK_UP = 5 };

/* PortInfo (14.2.5.6); numbers in brackets are offsets. */
struct port_info {
	uint64_t mkey;               /* [0] */
	uint64_t gid_prefix;         /* [8] */
	uint16_t lid;                /* [16] */
	uint16_t sm_lid;             /* [18] */
	uint32_t capabilities;       /* [20] */
	uint16_t diag_code;          /* [24] */
	uint16_t mkey_lease;         /* [26] seconds */
	uint8_t local_port;          /* [28] that the question came in by */
	uint8_t width_enabled;       /* [29] 1: 1x, 2: 4x, 4: 8x, 8: 12x; 255: all that are supported */
	uint8_t width_supported;     /* [30] */
	uint8_t width_active;        /* [31] */
	uint8_t speed_supported;     /* [32] high 4 bits: 1: 2.5, 2: 5, 4: 10 Gbit/s a lane */
	uint8_t state;               /* [32] low: enum port_state */
	uint8_t phys_state;          /* [33] high */
	uint8_t down_default;        /* [33] low */
	uint8_t mkey_protect;        /* [34] highest 2 bits */
	uint8_t lmc;                 /* [34] lowest 3 */
	uint8_t speed_active;        /* [35] high */
	uint8_t speed_enabled;       /* [35] low */
	uint8_t neighbor_mtu;        /* [36] high: enum mtu */
	uint8_t sm_sl;               /* [36] low */
	uint8_t vl_cap;              /* [37] high: 1: VL 0, 2: 0 and 1, 3: 0 to 3, 4: 0 to 7, 5: 0 to 14 */
	uint8_t init_type;           /* [37] low */
	uint8_t vl_high_limit;       /* [38] */
	uint8_t vl_arb_high_cap;     /* [39] */
	uint8_t vl_arb_low_cap;      /* [40] */
	uint8_t init_type_reply;     /* [41] high */
	uint8_t mtu_cap;             /* [41] low */
	uint8_t stall_count;         /* [42] highest 3 bits */
	uint8_t hoq_life;            /* [42] lowest 5 */
	uint8_t operational_vls;     /* [43] high, as vl_cap */
	uint8_t enforcement;         /* [43] low: partitions in, out, raw packets in, out */
	uint16_t mkey_violations;    /* [44] */
	uint16_t pkey_violations;    /* [46] */
	uint16_t qkey_violations;    /* [48] */
	uint8_t guid_cap;            /* [50] */
	uint8_t reregister;          /* [51] highest 3 bits: client reregister, and two of multicast P_Key traps */
	uint8_t subnet_timeout;      /* [51] lowest 5 */
	uint8_t response_time;       /* [52] lowest 5 bits */
	uint8_t phy_errors;          /* [53] high */
	uint8_t overrun_errors;      /* [53] low */
	uint16_t credit_hint;        /* [54] */
	uint32_t round_trip;         /* [56] lowest 24 bits */
	uint16_t capabilities2;      /* [60] */
	uint8_t ext_speed_active;    /* [62] high: 1: 14, 2: 25, 4: 50, 8: 100 Gbit/s a lane */
	uint8_t ext_speed_supported; /* [62] low */
	uint8_t ext_speed_enabled;   /* [63] lowest 5 bits */
};

/* All are of SMP_DATA_LEN bytes. */
void node_info_decode(struct node_info *, const uint8_t *);
void node_info_encode(uint8_t *, const struct node_info *);
void switch_info_decode(struct switch_info *, const uint8_t *);
void switch_info_encode(uint8_t *, const struct switch_info *);
void port_info_decode(struct port_info *, const uint8_t *);
void port_info_encode(uint8_t *, const struct port_info *);
