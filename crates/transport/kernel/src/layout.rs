//! Layouts of the structures that programs and this process share, compared with those in a compiled object.

use aya_obj::Object as Parsed;

use crate::btf::{BtfStructure, Types};
use crate::error::Error;

/// The layout of a structure in this program, as [`layout!`](crate::layout!) makes it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    name: &'static str,
    size: usize,
    members: &'static [MemberLayout],
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberLayout {
    /// Its name.
    pub name: &'static str,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

/// The [`Layout`] of a `repr(C)` structure, from its name in C and all of its members. The structure of the elements of a
/// member has the name `outer.member`. A missing member does not compile.
///
/// ```ignore
/// const COUNTS: Layout = layout!(Counts = "counts": connections, refused);
/// ```
#[macro_export]
macro_rules! layout {
    ($structure:ty = $name:literal: $($member:ident),+) => {
        $crate::Layout::new(
            $name,
            size_of::<$structure>(),
            &[$($crate::MemberLayout {
                name: stringify!($member),
                offset: core::mem::offset_of!($structure, $member),
                size: $crate::member_size(|structure: &$structure| &structure.$member),
            }),+],
        )
    };
}

/// The bytes of the member that `_member` returns.
pub const fn member_size<S, M>(_member: fn(&S) -> &M) -> usize {
    size_of::<M>()
}

impl Layout {
    /// A structure of this size with these members.
    ///
    /// # Panics
    ///
    /// If the members are not all of its bytes.
    pub const fn new(name: &'static str, size: usize, members: &'static [MemberLayout]) -> Self {
        let (mut sum, mut index) = (0, 0);
        while index < members.len() {
            sum += members[index].size;
            index += 1;
        }
        assert!(sum == size, "a member is missing, or there is padding");
        Self { name, size, members }
    }

    /// The first difference to the structure in an object.
    fn difference(&self, theirs: &BtfStructure, types: &Types) -> Option<String> {
        let size = theirs.size as usize;
        if size != self.size {
            return Some(format!("it has {size} bytes there, {} here", self.size));
        }
        self.members.iter().find_map(|ours| {
            let there = theirs.member(ours.name).and_then(|member| {
                Some(MemberLayout { offset: member.offset, size: types.size_of(member)?, ..*ours })
            });
            (there != Some(*ours)).then(|| {
                let there = there.map_or("missing".to_owned(), |it| it.place());
                format!("its member {} is {there} there, {} here", ours.name, ours.place())
            })
        })
    }
}

impl MemberLayout {
    fn place(&self) -> String {
        format!("at bytes {}..{}", self.offset, self.offset + self.size)
    }
}

/// Compares the layouts with the types of an object. The error names the structure, the member and both layouts.
pub(crate) fn check_layouts(layouts: &[Layout], types: &Types) -> Result<(), String> {
    layouts.iter().try_for_each(|ours| {
        let difference = types
            .structure_or_part(ours.name)
            .map_or(Some("it is missing there".to_owned()), |it| ours.difference(&it, types));
        difference.map_or(Ok(()), |difference| {
            Err(format!("the structure {} differs from this program's: {difference}", ours.name))
        })
    })
}

/// Compares the layouts with the compiled object `name`, as loading it does, without a privilege.
///
/// # Errors
///
/// If the bytes are not an object, or one of its structures differs.
pub fn check_object(name: &'static str, bytes: &[u8], layouts: &[Layout]) -> Result<(), Error> {
    let broken = |text: String| Error::Object(name, text);
    let parsed = Parsed::parse(bytes).map_err(|error| broken(error.to_string()))?;
    let types = parsed.btf.and_then(|types| Types::parse(types.to_bytes()));
    let types = types.ok_or_else(|| broken("no types".to_owned()))?;
    check_layouts(layouts, &types).map_err(broken)
}
