//! A folder compressed and restored: its files of tensors, index and configuration, byte for byte.

use std::{collections::BTreeMap, fs, path::Path};

use df11_file::{
    Code, Error, Job, Status, contents as look,
    restore::{self, RestoreOptions, RestoreReport},
};

use crate::{
    common::{
        checkpoint::{Layout, write},
        folder::{ModelFolder, contents},
        forged::Forged,
        result::ResultFile,
    },
    folders::model,
};

fn restored(from: &Path, to: Option<&Path>) -> Result<RestoreReport, Error> {
    restore::start(from, to, RestoreOptions::default())?.result()
}

fn assert_comes_back(folder: &ModelFolder, from: &Path, source: &BTreeMap<String, Vec<u8>>) {
    let to = folder.world.path("back");
    let report = restored(from, Some(&to)).unwrap();
    assert_eq!((report.status, report.exact), (Status::Done, true));
    let back = contents(&to);
    assert_eq!(
        back.keys().collect::<Vec<_>>(),
        source.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in source {
        // No assert_eq: the bytes are too many to print.
        assert!(back[name] == *bytes, "{name} differs");
    }
    assert_eq!(
        restored(from, Some(&to)).unwrap().status,
        Status::AlreadyDone
    );
    let config = to.join("config.json");
    fs::write(&config, "{}").unwrap();
    assert_eq!(
        restored(from, Some(&to)).unwrap_err().code,
        Code::TargetExists
    );
    fs::remove_dir_all(to).unwrap();
}

#[test]
fn folders_come_back_from_folders_and_from_files() {
    for layout in ["transformers", "diffusers", "diffusers-single"] {
        let folder = model(layout);
        let source = contents(&folder.path());
        folder.run(folder.world.options()).unwrap();
        assert_comes_back(&folder, &folder.target(), &source);
        assert_eq!(
            look(&folder.target()).unwrap().df11.unwrap().not_exact,
            None
        );
        let file = folder.world.path("one.safetensors");
        let plan = df11_file::plan(&folder.path(), Some(&file), folder.world.options());
        Job::start(plan.unwrap()).unwrap().result().unwrap();
        assert_comes_back(&folder, &file, &source);
    }
}

#[test]
fn a_folder_of_one_file_without_index_comes_back_too() {
    let folder = model("transformers");
    let tensors = folder.tensors();
    fs::remove_dir_all(folder.path()).unwrap();
    fs::create_dir(folder.path()).unwrap();
    write(
        &folder.file("model.safetensors"),
        &tensors,
        &Layout::default(),
    );
    fs::write(folder.file("config.json"), crate::common::folder::CONFIG).unwrap();
    let source = contents(&folder.path());
    folder.run(folder.world.options()).unwrap();
    assert_comes_back(&folder, &folder.target(), &source);
}

#[test]
fn renamed_files_come_back_and_damaged_ones_leave_nothing() {
    let folder = model("transformers");
    let source = contents(&folder.path());
    folder.run(folder.world.options()).unwrap();
    let (unit, other) = (
        folder.target().join("one_0.safetensors"),
        folder.target().join("0.safetensors"),
    );
    fs::rename(&unit, &other).unwrap();
    assert_comes_back(&folder, &folder.target(), &source);
    let mut bytes = fs::read(&other).unwrap();
    let at = ResultFile::parse(&bytes).offsets["one.0.sign_mantissa"] as usize;
    bytes[at + 5] ^= 1;
    fs::write(&other, bytes).unwrap();
    let to = folder.world.path("back");
    assert_eq!(
        restored(&folder.target(), Some(&to)).unwrap_err().code,
        Code::Verify
    );
    assert_eq!(
        folder.world.files(),
        ["architectures", "model", "model-DF11"]
    );
}

#[test]
fn without_a_name_it_goes_beside() {
    let folder = model("transformers");
    folder.run(folder.world.options()).unwrap();
    let moved = folder.world.path("elsewhere");
    fs::create_dir(&moved).unwrap();
    fs::rename(folder.target(), moved.join("model-DF11")).unwrap();
    let report = restored(&moved.join("model-DF11"), None).unwrap();
    assert_eq!(
        Path::new(&report.target),
        moved.join("model").canonicalize().unwrap()
    );
}

#[test]
fn names_in_a_description_cannot_leave_the_folder() {
    let folder = ModelFolder::with_one_unit(3000);
    folder.run(folder.world.options()).unwrap();
    let rest = folder.target().join("model.safetensors");
    for name in ["../evil.json", "/tmp/evil", "con.json", "", "CONFIG.JSON"] {
        let texts = serde_json::json!([[name, "{}"], ["config.json", "{}"]]).to_string();
        let mut forged = Forged::read(&rest);
        forged.pack("source_folder", texts.as_bytes());
        forged.write(&rest);
        let to = folder.world.path("back");
        assert_eq!(
            restored(&folder.target(), Some(&to)).unwrap_err().code,
            Code::Structure,
            "{name}"
        );
        assert_eq!(
            folder.world.files(),
            ["architectures", "model", "model-DF11"]
        );
    }
}
