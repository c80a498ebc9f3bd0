//! What a page calls. It writes a text into [`input`], calls one of the functions, and reads the outputs: the results if
//! the function returned 1, else a [`Refusal`] as JSON.
#![expect(unsafe_code, reason = "exported names are unsafe attributes; nothing else is")]

use std::cell::RefCell;

use crate::{Comparison, Refusal};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Where the page writes a text of `bytes` bytes of UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

/// Where the output of number `nth` is.
#[unsafe(no_mangle)]
pub extern "C" fn output(nth: usize) -> *const u8 {
    OUTPUTS.with_borrow(|outputs| outputs.get(nth).map_or(std::ptr::null(), |text| text.as_ptr()))
}

/// The length of the output of number `nth` in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_bytes(nth: usize) -> usize {
    OUTPUTS.with_borrow(|outputs| outputs.get(nth).map_or(0, String::len))
}

/// [`crate::setup()`].
#[unsafe(no_mangle)]
pub extern "C" fn setup() -> u32 {
    answer(|text| crate::setup(text).map(|json| vec![json]))
}

/// [`crate::race()`].
#[unsafe(no_mangle)]
pub extern "C" fn race() -> u32 {
    answer(|text| crate::race(text).map(|json| vec![json]))
}

/// [`crate::compare()`]: JSON and text.
#[unsafe(no_mangle)]
pub extern "C" fn compare() -> u32 {
    answer(|text| {
        let Comparison { json, text } = crate::compare(text)?;
        Ok(vec![json, text])
    })
}

fn answer(of: impl FnOnce(&str) -> Result<Vec<String>, Refusal>) -> u32 {
    let input = INPUT.take();
    let answer = of(&String::from_utf8_lossy(&input));
    let is_answer = answer.is_ok();
    OUTPUTS.set(answer.unwrap_or_else(|refusal| vec![refusal.to_json()]));
    u32::from(is_answer)
}
