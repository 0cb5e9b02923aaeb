//! What shells complete.

use crate::common::{World, code};

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

#[test]
fn every_shell_has_a_script_that_knows_commands_and_options() {
    let world = World::new(10);
    for shell in SHELLS {
        let output = world.run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["df11", "compress", "restore", "keep-uncompressed"] {
            assert!(script.contains(word), "{word} for {shell}");
        }
    }
    assert_eq!(code(&world.run(&["completions", "command.com"])), 2);
}
