//! Workflows of astronomy.

use super::recorder::{Recorder, share};
use catena_model::import::Trace;

/// Montage: each image is projected, neighbours are compared, the background is modelled and removed from each, and
/// everything is put together. There are about four comparisons per image.
pub(super) fn montage(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    let (images, pairs) = images_and_pairs(jobs);
    let count = images as f64;
    let header = r.file("region.hdr", 304.0);
    let projected: Vec<[u32; 2]> = (0..images)
        .map(|n| {
            let raw = r.file(format!("image{n:05}.fits"), 4.222e6);
            let size = r.around(4.163e6, 9e3);
            let out = ["", "_area"].map(|part| r.file(format!("projected{n:05}{part}.fits"), size));
            let seconds = r.around(13.57, 0.24);
            r.job("mProjectPP", seconds, vec![raw, header], out.to_vec());
            out
        })
        .collect();
    let mut fits = Vec::with_capacity(pairs.len());
    for (n, (a, b)) in pairs.iter().enumerate() {
        let size = r.around(288e3, 77e3);
        let out = [r.file(format!("fit{n:05}.txt"), 274.0), r.file(format!("difference{n:05}.fits"), size)];
        let [a, b] = [projected[*a], projected[*b]];
        let seconds = r.around(10.59, 0.1);
        r.job("mDiffFit", seconds, vec![a[0], a[1], b[0], b[1], header], out.to_vec());
        fits.push(out[0]);
    }
    let compared = pairs.len() as f64;
    let table = r.file("fits.tbl", 210.0 * compared);
    let seconds = r.between(0.078, 0.082) * compared;
    r.job("mConcatFit", seconds, fits, vec![table]);
    let images_table = r.file("images.tbl", 166.0 * count);
    let corrections = r.file("corrections.tbl", 53.0 * count);
    let seconds = count * (0.28 + 0.32 * count / (count + 40.0)) * r.between(0.97, 1.03);
    r.job("mBgModel", seconds, vec![table, images_table], vec![corrections]);
    let mut tabled = Vec::with_capacity(2 * images + 1);
    for (n, image) in projected.iter().enumerate() {
        let size = r.around(4.163e6, 1e4);
        let out = ["", "_area"].map(|part| r.file(format!("corrected{n:05}{part}.fits"), size));
        let seconds = r.around(10.74, 0.16);
        r.job("mBackground", seconds, vec![image[0], image[1], corrections], out.to_vec());
        tabled.extend(out);
    }
    let images_table = r.file("corrected.tbl", 400.0 * count);
    let seconds = count * r.between(0.39, 0.43);
    tabled.push(header);
    r.job("mImgTbl", seconds, tabled, vec![images_table]);
    let size = 37.5e6 + 1.6e6 * count;
    let mosaic = ["", "_area"].map(|part| r.file(format!("mosaic{part}.fits"), size));
    let seconds = count * r.between(0.59, 0.61);
    r.job("mAdd", seconds, vec![images_table, header], mosaic.to_vec());
    let shrunken = r.file("shrunken.fits", 0.04 * size);
    let seconds = (3.3 + 0.115 * count) * r.between(0.97, 1.03);
    r.job("mShrink", seconds, mosaic.to_vec(), vec![shrunken]);
    let picture = r.file("mosaic.jpg", 0.0047 * size);
    let seconds = (0.45 + 0.0125 * count) * r.between(0.97, 1.03);
    r.job("mJPEG", seconds, vec![shrunken], vec![picture]);
    r.named("montage")
}

/// How many images there are, and which neighbours are compared, if six more jobs put everything together.
fn images_and_pairs(jobs: usize) -> (usize, Vec<(usize, usize)>) {
    let parallel = jobs - 6;
    let mut images = ((parallel + 3) / 6).max(2);
    // Few images have few neighbours.
    while parallel > 2 * images + images * (images - 1) / 2 {
        images += 1;
    }
    let wanted = parallel - 2 * images;
    // The nearest first, until there are enough.
    let side = (images - 1).isqrt() + 1;
    let mut steps: Vec<(usize, isize)> = (0..side)
        .flat_map(|down| (0..side as isize).flat_map(move |right| [(down, right), (down, -right)]))
        .collect();
    steps.retain(|(down, right)| *down > 0 || *right > 0);
    steps.sort_unstable_by_key(|(down, right)| (down * down + right.unsigned_abs().pow(2), *down, *right));
    steps.dedup();
    let mut pairs = Vec::with_capacity(wanted);
    for (down, right) in steps {
        let other = |image: usize| {
            let column = (image % side).checked_add_signed(right).filter(|c| *c < side)?;
            Some((image / side + down) * side + column).filter(|o| *o < images)
        };
        let found: Vec<(usize, usize)> = (0..images).filter_map(|i| Some((i, other(i)?))).collect();
        // Of the farthest only as many as are missing, spread over the picture.
        let missing = (wanted - pairs.len()).min(found.len());
        let taken = (0..found.len()).filter(|n| share(missing, found.len(), *n) > 0);
        pairs.extend(taken.map(|n| found[n]));
    }
    (images, pairs)
}

/// The search for gravitational waves: in each group of data of a detector, a bank of templates for each piece, a search
/// with them, what coincides, a smaller bank, another search, and what coincides then.
pub(super) fn inspiral(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    let groups = jobs / 50 + 1;
    let searches = (jobs - 2 * groups) / 2;
    let (first, second) = (searches / 2, searches - searches / 2);
    let odd = (jobs - 2 * groups) % 2;
    // Some groups have many pieces, some have few, each has one.
    let mut bounds: Vec<usize> = (1..groups).map(|_| r.below(first - groups + 1)).collect();
    bounds.sort_unstable();
    bounds.push(first - groups);
    let calibration = [("calibration_ref.gwf", 0.9e6), ("calibration_fac.gwf", 8.4e6)];
    let calibration = calibration.map(|(name, size)| r.file(name, size));
    let injections = r.file("injections.xml", 2.42e6);
    let mut before = 0;
    for (group, bound) in bounds.into_iter().enumerate() {
        let width = bound - before + 1;
        before = bound;
        let frames: Vec<Vec<u32>> = (0..width)
            .map(|n| {
                let pieces = ["a", "b"].map(|p| (p, r.around(15.57e6, 1e4)));
                let pieces = pieces.map(|(p, size)| r.file(format!("frame{group:03}_{n:03}{p}.gwf"), size));
                [calibration, pieces].concat()
            })
            .collect();
        // With one more bank, or one more search with a smaller bank, the number of jobs is as asked for.
        let last = group + 1 == groups;
        let mut found = Vec::new();
        for (n, frames) in frames.iter().enumerate() {
            let mut inputs = [&frames[..], &[injections]].concat();
            for extra in 0..=(if last && n == 0 { odd } else { 0 }) {
                let size = r.around(987e3, 18e3);
                let bank = r.file(format!("templates{group:03}_{n:03}_{extra}.xml"), size);
                let seconds = r.around(18.15, 0.43);
                r.job("TmpltBank", seconds, frames.clone(), vec![bank]);
                inputs.push(bank);
            }
            found.push(search(&mut r, format!("triggers{group:03}_{n:03}.xml"), inputs));
        }
        let size = r.around(34e3, 9e3);
        let coincident = r.file(format!("coincident{group:03}.xml"), size);
        let seconds = r.around(5.33, 0.25);
        r.job("Thinca", seconds, found, vec![coincident]);
        let mut found = Vec::new();
        for n in 0..width + if last { second - first } else { 0 } {
            let size = r.around(12.8e3, 3.4e3);
            let bank = r.file(format!("smallbank{group:03}_{n:03}.xml"), size);
            let seconds = r.around(5.1, 0.33);
            r.job("TrigBank", seconds, vec![coincident], vec![bank]);
            let inputs = [&frames[n % width][..], &[injections, bank]].concat();
            found.push(search(&mut r, format!("again{group:03}_{n:03}.xml"), inputs));
        }
        let size = r.around(34e3, 9e3);
        let coincident = r.file(format!("events{group:03}.xml"), size);
        let seconds = r.around(5.33, 0.25);
        r.job("Thinca", seconds, found, vec![coincident]);
    }
    r.named("inspiral")
}

/// Searches a piece of data with a bank of templates.
fn search(r: &mut Recorder, name: String, inputs: Vec<u32>) -> u32 {
    let size = r.around(312e3, 90e3);
    let found = r.file(name, size);
    let seconds = r.between(232.0, 688.0);
    r.job("Inspiral", seconds, inputs, vec![found]);
    found
}

/// The search for clusters of galaxies: in each stripe of the sky, fields are searched for bright red galaxies, then each
/// field with its two neighbours for the brightest galaxy of a cluster; what is found is put together. No record of it
/// is public; runtimes and sizes are of the order that its authors tell.
pub(super) fn sdss(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    let stripes = (jobs / 400).max(1);
    let fields = (jobs - 1 - stripes) / 4;
    // What is left over searches fields at the edge, which count as neighbours only.
    let edge = (jobs - 1 - stripes) % 4;
    let mut found = Vec::new();
    for stripe in 0..stripes {
        let fields = share(fields, stripes, stripe);
        let edge = if stripe == 0 { edge } else { 0 };
        let mut bright = Vec::with_capacity(fields + edge);
        for n in 0..fields + edge {
            let [image, size] = [r.around(3e6, 4e5), r.around(120e3, 30e3)];
            let image = r.file(format!("field{stripe:03}_{n:04}.fits"), image);
            let galaxies = r.file(format!("bright{stripe:03}_{n:04}.fits"), size);
            let seconds = r.skewed(30.0, 12.0);
            r.job("brgSearch", seconds, vec![image], vec![galaxies]);
            bright.push(galaxies);
        }
        let mut stripe_of = Vec::with_capacity(fields);
        for n in 0..fields {
            let around = [n, (n + 1) % fields, (n + fields - 1) % fields];
            let mut inputs: Vec<u32> = around.iter().map(|n| bright[*n]).collect();
            if n == 0 {
                inputs.extend(&bright[fields..]);
            }
            inputs.sort_unstable();
            inputs.dedup();
            let mut step = |program, inputs, name: &str, mean: f64, size: f64| {
                let size = r.around(size, size / 5.0);
                let file = r.file(format!("{name}{stripe:03}_{n:04}.fits"), size);
                let seconds = r.skewed(mean, mean / 3.0);
                r.job(program, seconds, inputs, vec![file]);
                file
            };
            let brightest = step("bcgSearch", inputs, "brightest", 120.0, 60e3);
            let joined = step("bcgCoalesce", vec![brightest], "joined", 15.0, 20e3);
            stripe_of.push(step("getCatalog", vec![joined], "catalogue", 8.0, 10e3));
        }
        let catalogue = r.file(format!("stripe{stripe:03}.fits"), 10e3 * fields as f64);
        let seconds = 5.0 + 0.05 * fields as f64;
        r.job("joinStripe", seconds, stripe_of, vec![catalogue]);
        found.push(catalogue);
    }
    let clusters = r.file("clusters.fits", 10e3 * fields as f64);
    let seconds = 10.0 + 2.0 * stripes as f64;
    r.job("joinClusters", seconds, found, vec![clusters]);
    r.named("sdss")
}
