//! Each value with its source; "assumed" marks a value without one.

use super::PresetTerm::{Table, Text};
use super::{Preset, PresetValue};

pub(super) static PRESETS: [Preset; 12] = [
    Preset {
        name: "fibre",
        title: "Full fibre to the home, server nearby",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("149.2mbit"),
                source: "Ofcom, UK home broadband performance, March 2023: average download speed of full fibre, 149.2 Mbit/s",
            },
            PresetValue {
                key: "rtt",
                term: Text("12ms"),
                source: "Verizon, Fios and DSL performance (FCC, Measuring Broadband America 2016): 11.56 ms for Fios of 50 to 75 Mbit/s",
            },
            PresetValue { key: "loss", term: Text("0%"), source: "assumed" },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
        ],
    },
    Preset {
        name: "cable",
        title: "Cable (DOCSIS 3.1), server nearby",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("270.6mbit"),
                source: "Ofcom, UK home broadband performance, March 2023: average download speed of cable, 270.6 Mbit/s",
            },
            PresetValue {
                key: "rtt",
                term: Text("28ms"),
                source: "WebPageTest, connectivity.ini, profile Cable",
            },
            PresetValue { key: "loss", term: Text("0%"), source: "assumed" },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
            PresetValue {
                key: "uplink",
                term: Table(&[
                    ("rate", "18.4mbit"),
                    ("queue", "pie:target=10ms"),
                    ("buffer", "1000p"),
                ]),
                source: "rate: Ofcom, March 2023, average upload speed of all lines, 18.4 Mbit/s; queue: PIE with a target of 10 ms, RFC 8034 (DOCSIS-PIE, here as in RFC 8033); buffer: assumed",
            },
        ],
    },
    Preset {
        name: "dsl",
        title: "ADSL, server nearby",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("5.66mbit"),
                source: "Verizon, Fios and DSL performance (FCC, Measuring Broadband America 2016): DSL of 3.1 to 7 Mbit/s, 5.66 Mbit/s measured",
            },
            PresetValue { key: "rtt", term: Text("37ms"), source: "the same: 37.05 ms" },
            PresetValue { key: "loss", term: Text("0%"), source: "assumed" },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
            PresetValue {
                key: "uplink",
                term: Table(&[("rate", "0.82mbit"), ("buffer", "100p")]),
                source: "rate: the same, 0.82 Mbit/s; buffer: assumed",
            },
        ],
    },
    Preset {
        name: "wifi",
        title: "Wi-Fi (802.11n, 40 MHz) behind fibre, Wi-Fi the bottleneck",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("120mbit"),
                source: "CeroWrt blog, A look back at CeroWrt's WiFi: about 120 Mbit/s in HT40 mode",
            },
            PresetValue {
                key: "rtt",
                term: Text("17ms"),
                source: "12 ms of preset fibre, and 5 ms of the Wi-Fi hop at least (the same blog)",
            },
            PresetValue {
                key: "loss",
                term: Text("0%"),
                source: "assumed: Wi-Fi retransmits lost frames itself",
            },
            PresetValue {
                key: "queue",
                term: Text("fq_codel:target=20ms"),
                source: "Linux, net/mac80211: FQ-CoDel for each station, target 20 ms, interval 100 ms (Høiland-Jørgensen et al., Ending the Anomaly, USENIX ATC 2017)",
            },
            PresetValue {
                key: "buffer",
                term: Text("8192p"),
                source: "Linux, include/net/fq_impl.h: 8192 packets",
            },
            PresetValue {
                key: "aggregation",
                term: Text("4ms"),
                source: "Linux, ath9k: aggregates of at most 4 ms; that ACKs come in such turns is assumed",
            },
        ],
    },
    Preset {
        name: "3g",
        title: "3G phone, as WebPageTest throttles",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("1.6mbit"),
                source: "WebPageTest, connectivity.ini, profile 3G",
            },
            PresetValue { key: "rtt", term: Text("300ms"), source: "the same" },
            PresetValue { key: "loss", term: Text("0%"), source: "the same" },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
            PresetValue {
                key: "uplink",
                term: Table(&[("rate", "768kbit"), ("buffer", "100p")]),
                source: "rate: the same; buffer: assumed",
            },
        ],
    },
    Preset {
        name: "slow-4g",
        title: "Slow 4G, as Lighthouse and Chrome throttle",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("1.6384mbit"),
                source: "Lighthouse, core/config/constants.js, mobileSlow4G: 1.6 · 1024 kbit/s",
            },
            PresetValue { key: "rtt", term: Text("150ms"), source: "the same" },
            PresetValue { key: "loss", term: Text("0%"), source: "the same: none" },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
            PresetValue {
                key: "uplink",
                term: Table(&[("rate", "750kbit"), ("buffer", "100p")]),
                source: "rate: the same, before the factor for DevTools; buffer: assumed",
            },
        ],
    },
    Preset {
        name: "lte",
        title: "4G (LTE) phone, server nearby, rate varies",
        values: &[
            PresetValue {
                key: "lte",
                term: Table(&[("mean", "29.5mbit"), ("variation", "0.64"), ("correlation", "5s")]),
                source: "mean: Ofcom, Mobile Matters 2023, average 4G download speed, 29.5 Mbit/s; variation and correlation: medians over five LTE downlink traces of mahimahi (AT&T, T-Mobile, Verizon) in windows of 1 s, 0.56 to 0.85 and 3 to 14 s",
            },
            PresetValue {
                key: "rtt",
                term: Text("21ms"),
                source: "Ofcom, Mobile Matters 2024: average 4G response time by operator, 18.3 to 23.7 ms",
            },
            PresetValue {
                key: "loss",
                term: Text("0%"),
                source: "assumed: the radio link retransmits lost data (3GPP TS 36.322)",
            },
            PresetValue {
                key: "buffer",
                term: Text("10bdp"),
                source: "assumed: deep, as Jiang et al., Tackling Bufferbloat in 3G/4G Networks, IMC 2012, found",
            },
            PresetValue {
                key: "jitter",
                term: Text("8ms"),
                source: "one HARQ round trip, 8 ms (3GPP TS 36.321, FDD); that it is uniform is assumed",
            },
            PresetValue {
                key: "uplink",
                term: Table(&[("rate", "7.6mbit"), ("buffer", "100p")]),
                source: "rate: Ofcom, Mobile Matters 2023, average 4G upload speed, 7.6 Mbit/s; buffer: assumed",
            },
        ],
    },
    Preset {
        name: "5g",
        title: "5G phone, server nearby, rate varies",
        values: &[
            PresetValue {
                key: "lte",
                term: Table(&[("mean", "129.9mbit"), ("variation", "0.64"), ("correlation", "5s")]),
                source: "mean: Ofcom, Mobile Matters 2023, average 5G download speed, 129.9 Mbit/s; variation and correlation: assumed, those of preset lte",
            },
            PresetValue {
                key: "rtt",
                term: Text("19ms"),
                source: "Ofcom, Mobile Matters 2024: average 5G response time by operator, 16.3 to 21.4 ms",
            },
            PresetValue {
                key: "loss",
                term: Text("0%"),
                source: "assumed: the radio link retransmits lost data",
            },
            PresetValue { key: "buffer", term: Text("10bdp"), source: "assumed: as preset lte" },
            PresetValue {
                key: "uplink",
                term: Table(&[("rate", "14.7mbit"), ("buffer", "100p")]),
                source: "rate: Ofcom, Mobile Matters 2023, average 5G upload speed, 14.7 Mbit/s; buffer: assumed",
            },
        ],
    },
    Preset {
        name: "satellite-geo",
        title: "Geostationary satellite, without a proxy",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("50mbit"),
                source: "IETF, draft-kuhn-quic-4-sat: medium public satellite broadband access, 50 Mbit/s down and 10 Mbit/s up",
            },
            PresetValue {
                key: "rtt",
                term: Text("600ms"),
                source: "Michel et al., A First Look at Starlink Performance, IMC 2022: about 600 ms at least; RFC 2488: 558 ms of propagation at the edge of the view area",
            },
            PresetValue {
                key: "loss",
                term: Text("0%"),
                source: "IETF, draft-kuhn-quic-4-sat: loss-free",
            },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
            PresetValue {
                key: "uplink",
                term: Table(&[("rate", "10mbit"), ("buffer", "1000p")]),
                source: "rate: as above; buffer: assumed",
            },
        ],
    },
    Preset {
        name: "satellite-leo",
        title: "Low Earth orbit satellite (Starlink)",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("178mbit"),
                source: "Michel et al., A First Look at Starlink Performance, IMC 2022: median download, 178 Mbit/s",
            },
            PresetValue {
                key: "rtt",
                term: Text("50ms"),
                source: "the same: median to European anchors, 50 ms, quartiles 40 and 60 ms",
            },
            PresetValue {
                key: "loss",
                term: Text("gilbert:mean=0.4%,burst=100"),
                source: "the same: 0.40 % of QUIC messages downstream at low load; losses go with handovers (Kassem et al., A Browser-side View of Starlink Connectivity, IMC 2022), so they come in bursts, of 100 packets, which is assumed; CUBIC depends on it much: vary burst",
            },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
            PresetValue {
                key: "jitter",
                term: Text("20ms"),
                source: "Huston, A transport protocol's view of Starlink, APNIC 2024: 6.7 ms on average between successive packets, a third of the maximum if jitter is uniform, which is assumed",
            },
            PresetValue {
                key: "uplink",
                term: Table(&[("rate", "17mbit"), ("buffer", "1000p")]),
                source: "rate: Michel et al., median upload, 17 Mbit/s; buffer: assumed",
            },
        ],
    },
    Preset {
        name: "datacenter",
        title: "Between racks of a data centre, 10 Gbit/s",
        values: &[
            PresetValue {
                key: "rate",
                term: Text("10gbit"),
                source: "Alizadeh et al., Data Center TCP, SIGCOMM 2010: switch ports of 10 Gbit/s",
            },
            PresetValue {
                key: "rtt",
                term: Text("250us"),
                source: "the same: between racks under 250 us, within a rack about 100 us, without queues",
            },
            PresetValue { key: "loss", term: Text("0%"), source: "assumed" },
            PresetValue {
                key: "buffer",
                term: Text("167kB"),
                source: "the same, switch Scorpion: 4 MB for 24 ports, here in equal parts (they share dynamically)",
            },
        ],
    },
    Preset {
        name: "intercontinental",
        title: "Across the Pacific",
        values: &[
            PresetValue { key: "rate", term: Text("100mbit"), source: "assumed" },
            PresetValue {
                key: "rtt",
                term: Text("160ms"),
                source: "Verizon, service level agreement: Los Angeles to Tokyo and back in at most 160 ms (New York to London: 90 ms)",
            },
            PresetValue {
                key: "loss",
                term: Text("0%"),
                source: "assumed: none; the same agreement has at most 0.5 %",
            },
            PresetValue { key: "buffer", term: Text("1bdp"), source: "assumed" },
        ],
    },
];
