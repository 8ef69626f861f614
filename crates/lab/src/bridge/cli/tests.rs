//! The command line of a bridge.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    bridge: BridgeArgs,
}

fn options(line: &str) -> Result<Options, String> {
    let words = format!("x run {line}");
    let line = Line::try_parse_from(words.split_whitespace()).map_err(|e| e.to_string())?;
    let BridgeCommand::Run(args) = line.bridge.command else { panic!("not run") };
    args.options(Path::new("/run/x")).map_err(|e| e.to_string())
}

#[test]
fn two_ends_and_a_link() {
    let line = "--between ns:a@10.9.0.1/24 --and ns:b@10.9.0.2/24 --rtt 100ms --rate 1Gbit \
                --loss 0.1% --set back.loss=1% --for 60s --encrypt";
    let options = options(line).expect("options");
    assert_eq!(options.name, "wan");
    assert_eq!(options.shapes.rtt_ns(), 100_000_000);
    assert_eq!((options.shapes.forth.loss, options.shapes.back.loss), (0.001, 0.01));
    assert_eq!(options.lasts, Some(Duration::from_secs(60)));
    assert_eq!(options.socket, Path::new("/run/x/bridges/wan.sock"));
    assert!(options.encrypt && options.mtu == 1500);
}

#[test]
fn what_makes_no_bridge_is_refused() {
    for (line, why) in [
        ("", "--between"),
        ("--between ns:a@10.9.0.1/24", "--and"),
        (
            "--between here@10.9.0.1/24 --and here@10.9.0.2/24",
            "both ends are in the same network namespace",
        ),
        ("--between ns:a@10.9.0.1/24 --and ns:b@10.9.0.2/24 --name a/b", "not a valid name"),
        ("--between ns:a@10.9.0.1/24 --and ns:b@10.9.0.2/24 --loss 200%", "is not a fraction"),
        ("--end here@10.9.0.1/24", "--key"),
    ] {
        let told = options(line).expect_err(line);
        assert!(told.contains(why), "{line}: {told}");
    }
}

#[test]
fn a_key_is_64_digits() {
    let text = "00ff".repeat(16);
    assert_eq!(parse_key(&text).map(|key| key[..2].to_vec()), Some(vec![0, 255]));
    let one_less = &text[1..];
    for text in ["", "00", one_less, &"zz".repeat(32)] {
        assert_eq!(parse_key(text), None, "{text}");
    }
}
