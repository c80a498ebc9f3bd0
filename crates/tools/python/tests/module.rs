//! Python imports the module, and a comparison has the bytes of the library.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::process::Command;

use uncork_lab::{CompareSpec, Engine, SweepResults, items, run_items};

const IN_PYTHON: &str = "\
import importlib.util, sys
spec = importlib.util.spec_from_file_location('_native', sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
options = [('size', '100kB'), ('seeds', '2'), ('cc', 'cubic,bbr3')]
print(module.compare(options, None, None).json(), end='')";

#[test]
fn comparison_in_python_has_the_bytes_of_the_library() {
    let options = [("size", "100kB"), ("seeds", "2"), ("cc", "cubic,bbr3")];
    let spec = CompareSpec::of_options(options).unwrap();
    let scenario = spec.scenario(None).unwrap();
    let of = (&scenario, Engine::Sim);
    let runs = run_items(of, &items(&scenario), 1, &false.into(), &|_, _| {}).unwrap();
    let document = SweepResults::new(runs).document(&scenario, spec.command(), false);
    // cargo builds the module next to the tests.
    let module = std::env::current_exe().unwrap();
    let module = module.with_file_name(format!("{DLL_PREFIX}uncork_native{DLL_SUFFIX}"));
    let run = Command::new("python3").args(["-c", IN_PYTHON]).arg(module).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stdout), document.to_json());
}
