//! What a fault report needs.

use std::fs;

use crate::common::{World, code, json};

#[test]
fn a_report_has_versions_kernels_memory_and_places() {
    let world = World::new(10);
    let found = json(&world.run(&["env", "--json"]));
    assert_eq!(found["schema"], "df11.env/1");
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    for text in ["platform", "program", "system", "processor"] {
        assert!(!found[text].as_str().unwrap().is_empty(), "{text}");
    }
    let kernels = found["kernels"].as_array().unwrap();
    assert!(kernels.contains(&found["kernel"]) && kernels.contains(&"reference".into()));
    assert_eq!(found["disabled_kernels"].as_array().unwrap().len(), 0);
    assert!(found["threads"].as_u64().unwrap() >= 1);
    let [total, available, budget] = ["total_memory", "available_memory", "memory_budget"]
        .map(|name| found[name].as_u64().unwrap());
    assert!(total >= available && available > 0 && budget >= 64 << 20);
    let folder = world.path("architectures").display().to_string();
    assert_eq!(found["architectures"][folder], 1);
    assert!(found["architectures"]["this program"].as_u64().unwrap() > 19);
    assert_eq!(
        (&found["comfyui"], &found["host"]),
        (&().into(), &serde_json::json!({}))
    );
}

#[test]
fn the_same_in_words() {
    let world = World::new(10);
    let output = world.run(&["env"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(concat!("df11 ", env!("CARGO_PKG_VERSION"), " for ")));
    for row in [
        "  kernel ",
        "  memory ",
        "  threads ",
        "  ComfyUI       not in this folder or above it\n",
    ] {
        assert!(text.contains(row), "{row} in\n{text}");
    }
}

#[test]
fn comfyui_is_found_from_within_and_from_beside_it() {
    let world = World::new(10);
    let pack = world.path("ComfyUI/custom_nodes/pack");
    fs::create_dir_all(&pack).unwrap();
    let version = "# generated\n__version__ = \"0.30.0\"\n";
    fs::write(world.path("ComfyUI/comfyui_version.py"), version).unwrap();
    for folder in [world.path("ComfyUI"), pack, world.path("architectures")] {
        let mut command = world.command(&["env", "--json"]);
        let found = json(&command.current_dir(&folder).output().unwrap());
        assert_eq!(
            found["comfyui"]["version"],
            "0.30.0",
            "{}",
            folder.display()
        );
    }
}

#[test]
fn a_kernel_can_be_asked_for() {
    let world = World::new(10);
    let kernel = |name| {
        world
            .command(&["env", "--json"])
            .env("DF11_KERNEL", name)
            .output()
            .unwrap()
    };
    assert_eq!(json(&kernel("reference"))["kernel"], "reference");
    assert_eq!(code(&kernel("none-such")), 2);
}
