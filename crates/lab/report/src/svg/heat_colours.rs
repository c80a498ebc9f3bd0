//! Colours of heat maps: few enough to be CSS classes, each with a readable text colour. They are
//! mixed in the Oklab space (B. Ottosson, "A perceptual color space for image processing", 2020),
//! in which equal steps look equal.

/// Steps of a scale; odd, so that a diverging scale has a middle.
pub(super) const STEPS: usize = 11;

type Rgb = [f64; 3];

/// From the page's background to the full colour, for light and dark pages.
const SEQUENTIAL: [[u32; 3]; 2] =
    [[0x00ee_f5fa, 0x0056_a5d8, 0x0008_3a6b], [0x001b_2733, 0x0023_78b0, 0x00b9_e2fb]];

/// From worse through the page's background to better: purple and green, which are distinguishable
/// with any colour vision (ColorBrewer's `PRGn`) and differ from the red of a missed threshold.
const DIVERGING: [[u32; 3]; 2] =
    [[0x0076_2a83, 0x00f4_f4f2, 0x001b_7837], [0x00d0_9bdf, 0x0024_2a31, 0x0071_c98b]];

/// Rules for the classes `h0` to `h10` (sequential) and `v0` to `v10` (diverging).
pub(crate) fn heat_style() -> String {
    let rules = |page: usize| {
        let rule = |kind: char, anchors: [u32; 3], n: usize| {
            let colour = mixed(anchors, n as f64 / (STEPS - 1) as f64);
            let ink = if is_light(colour) { "#000" } else { "#fff" };
            let fill = hex(colour);
            format!(".{kind}{n} path{{fill:{fill}}}svg.chart .{kind}{n} text{{fill:{ink}}}\n")
        };
        let sequential = (0..STEPS).map(|n| rule('h', SEQUENTIAL[page], n));
        let diverging = (0..STEPS).map(|n| rule('v', DIVERGING[page], n));
        sequential.chain(diverging).collect::<Vec<_>>().concat()
    };
    format!("{}@media screen and (prefers-color-scheme:dark){{\n{}}}\n", rules(0), rules(1))
}

/// The diverging scale for light (0) or dark pages (1).
#[cfg(test)]
pub(crate) fn diverging(page: usize) -> [String; STEPS] {
    std::array::from_fn(|n| hex(mixed(DIVERGING[page], n as f64 / (STEPS - 1) as f64)))
}

fn hex(colour: Rgb) -> String {
    let [r, g, b] = colour.map(|channel| (channel * 255.0).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The colour at `position` (0 to 1) along three anchors.
fn mixed(anchors: [u32; 3], position: f64) -> Rgb {
    let [first, middle, last] = anchors.map(|colour| to_oklab(rgb(colour)));
    let (from, to, part) = match position {
        p if p <= 0.5 => (first, middle, p * 2.0),
        p => (middle, last, p * 2.0 - 1.0),
    };
    let blend = |n: usize| from[n] + (to[n] - from[n]) * part;
    from_oklab([blend(0), blend(1), blend(2)])
}

/// Whether black has a better contrast on it than white: WCAG 2.1, "contrast ratio".
fn is_light(colour: Rgb) -> bool {
    let luminance = luminance(colour) + 0.05;
    luminance / 0.05 > 1.05 / luminance
}

/// WCAG 2.1, "relative luminance".
fn luminance(colour: Rgb) -> f64 {
    let [r, g, b] = colour.map(linear);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// Converts a channel of sRGB to linear light.
fn linear(c: f64) -> f64 {
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

fn rgb(colour: u32) -> Rgb {
    let [_, r, g, b] = colour.to_be_bytes();
    [r, g, b].map(|channel| f64::from(channel) / 255.0)
}

fn times(matrix: [[f64; 3]; 3], v: Rgb) -> Rgb {
    matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

fn to_oklab(colour: Rgb) -> Rgb {
    let cones = times(
        [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ],
        colour.map(linear),
    );
    times(
        [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ],
        cones.map(f64::cbrt),
    )
}

fn from_oklab(lab: Rgb) -> Rgb {
    let cones = times(
        [
            [1.0, 0.396_337_777_4, 0.215_803_757_3],
            [1.0, -0.105_561_345_8, -0.063_854_172_8],
            [1.0, -0.089_484_177_5, -1.291_485_548_0],
        ],
        lab,
    );
    let linear = times(
        [
            [4.076_741_662_1, -3.307_711_591_3, 0.230_969_929_2],
            [-1.268_438_004_6, 2.609_757_401_1, -0.341_319_396_5],
            [-0.004_196_086_3, -0.703_418_614_7, 1.707_614_701_0],
        ],
        cones.map(|c| c.powi(3)),
    );
    linear
        .map(|c| if c <= 0.003_130_8 { 12.92 * c } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 })
        .map(|c| c.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lightness(colour: Rgb) -> f64 {
        to_oklab(colour)[0]
    }

    #[test]
    fn oklab_round_trip() {
        for colour in [0x0000_0000, 0x00ff_ffff, 0x0076_2a83, 0x0012_3456] {
            let back = from_oklab(to_oklab(rgb(colour)));
            for (a, b) in back.into_iter().zip(rgb(colour)) {
                assert!((a - b).abs() < 1e-4, "{colour:x}: {back:?}");
            }
        }
        assert!((lightness([1.0; 3]) - 1.0).abs() < 1e-6, "white is 1 by definition");
    }

    /// The lightness of a sequential scale is monotonic; that of a diverging one has its extreme in
    /// the middle. So maps are readable in black and white.
    #[test]
    fn lightness_shows_the_order() {
        let lightness_at = |anchors, n: usize| lightness(mixed(anchors, n as f64 / 10.0));
        for anchors in SEQUENTIAL {
            let rises: Vec<bool> =
                (0..10).map(|n| lightness_at(anchors, n + 1) > lightness_at(anchors, n)).collect();
            assert!(rises.iter().all(|rise| *rise == rises[0]), "{anchors:x?} {rises:?}");
        }
        for anchors in DIVERGING {
            let away = |n: usize| (lightness_at(anchors, n) - lightness_at(anchors, 5)).abs();
            assert!((0..5).all(|n| away(n) > away(n + 1)), "{anchors:x?}");
            assert!((5..10).all(|n| away(n + 1) > away(n)), "{anchors:x?}");
        }
    }

    /// WCAG 2.1 §1.4.3: a contrast of 4.5 for text of this size.
    #[test]
    fn text_is_readable_on_every_colour() {
        for anchors in SEQUENTIAL.into_iter().chain(DIVERGING) {
            for n in 0..STEPS {
                let colour = mixed(anchors, n as f64 / 10.0);
                let luminance = luminance(colour) + 0.05;
                let contrast = if is_light(colour) { luminance / 0.05 } else { 1.05 / luminance };
                assert!(contrast >= 4.5, "{anchors:x?} step {n}: {contrast}");
            }
        }
    }
}
