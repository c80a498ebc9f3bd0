//! The state of `uncork kernel`'s controllers for a socket (`INET_DIAG_SK_BPF_STORAGES`).

use crate::attributes::Attributes;
use crate::cc_info::BbrInfo;
use crate::fields::Fields;

/// `SK_DIAG_BPF_STORAGE`, and of each its `…_MAP_ID` and `…_MAP_VALUE` (`include/uapi/linux/sock_diag.h`).
const STORAGE: u16 = 1;
const MAP_ID: u16 = 2;
const MAP_VALUE: u16 = 3;

/// Where `struct report` is in `struct state` (`crates/transport/kernel/bpf/shim.bpf.c`): behind kind, number and key.
const REPORT: usize = 16;
/// Magic, layout and length.
const HEAD: usize = 8;
const MAGIC: u32 = u32::from_le_bytes(*b"uncr");
const LAYOUT: u16 = 1;

/// The state of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Storage {
    /// The kernel's number of the map.
    pub(crate) map: Option<u32>,
    /// The state of a BBR, in this layout.
    pub(crate) bbr: Option<BbrInfo>,
}

/// The storage of a controller, if one of the maps is that of one.
pub(crate) fn find(storages: &[u8]) -> Option<Storage> {
    Attributes(storages)
        .filter_map(Result::ok)
        .find_map(|(kind, storage)| (kind == STORAGE).then(|| read(storage)).flatten())
}

fn read(storage: &[u8]) -> Option<Storage> {
    let inside = |wanted| {
        let attributes = Attributes(storage).filter_map(Result::ok);
        attributes.filter(move |(kind, _)| *kind == wanted).map(|(_, value)| value).next()
    };
    let report = inside(MAP_VALUE)?.get(REPORT..)?;
    let head = Fields(report);
    if head.u32(0)? != MAGIC {
        return None;
    }
    let content = report.get(HEAD..HEAD + usize::from(head.u16(6)?));
    let content = content.filter(|_| head.u16(4) == Some(LAYOUT));
    let bbr = content.and_then(BbrInfo::parse);
    Some(Storage { map: inside(MAP_ID).and_then(|id| Fields(id).u32(0)), bbr })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn bbr(storages: &[u8]) -> Option<BbrInfo> {
        find(storages)?.bbr
    }

    fn storages(head: u32, layout: u16, length: u16) -> Vec<u8> {
        let mut value = vec![7; REPORT];
        value.extend(head.to_ne_bytes());
        value.extend(layout.to_ne_bytes());
        value.extend(length.to_ne_bytes());
        let words = [1_000_u32, 0, 20_000, 320, 512, 2_000, 0, 1_500, 0];
        value.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        value.extend([2, 6, 0, 3]);
        value.extend([30_u32, 40, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
        value.resize(value.len() + 100, 9);
        let foreign = attribute(STORAGE, &attribute(MAP_VALUE, &[1; 8]));
        let ours = [attribute(MAP_ID, &[1, 0, 0, 0]), attribute(MAP_VALUE, &value)].concat();
        [foreign, attribute(STORAGE, &ours)].concat()
    }

    #[test]
    fn the_state_is_found_among_other_maps() {
        let info = bbr(&storages(MAGIC, LAYOUT, 52)).expect("BBR");
        assert_eq!((info.version(), info.state().name()), (3, "ProbeBW_CRUISE"));
        assert_eq!(info.bw.bytes_per_sec(), 1_000);
        let bounds = info.bbr2.expect("a successor of BBRv1");
        assert_eq!((bounds.bw_hi.bytes_per_sec(), bounds.bw_lo.bytes_per_sec()), (2_000, 1_500));
        assert_eq!((bounds.inflight_lo, bounds.inflight_hi), (Some(30), Some(40)));
        let first = bbr(&storages(MAGIC, LAYOUT, 20)).expect("BBRv1");
        assert_eq!((first.version(), first.bbr2), (1, None));
    }

    #[test]
    fn the_map_is_known_with_any_layout() {
        for layout in [LAYOUT, LAYOUT + 1] {
            let found = find(&storages(MAGIC, layout, 0)).expect("a controller's");
            assert_eq!((found.map, found.bbr), (Some(1), None));
        }
        assert_eq!(find(&storages(MAGIC + 1, LAYOUT, 52)), None);
    }

    #[test]
    fn other_layouts_and_torn_values_are_absent() {
        assert_eq!(bbr(&storages(MAGIC, LAYOUT, 0)), None, "no BBR");
        assert_eq!(bbr(&storages(MAGIC, LAYOUT + 1, 52)), None);
        assert_eq!(bbr(&storages(MAGIC + 1, LAYOUT, 52)), None);
        assert_eq!(bbr(&storages(MAGIC, LAYOUT, u16::MAX)), None);
        let whole = storages(MAGIC, LAYOUT, 52);
        for end in 0..whole.len() {
            // Must not panic.
            let _ = bbr(&whole[..end]);
        }
    }
}
