//! The language: what is read, what is refused and where, what is listed.

use super::*;
use crate::dist::{Dist, Form};
use crate::program::{Op, Quit, Sharing, Step};

const NEW: &str = include_str!("../../tests/corpus/dialect-15.f");
const OLD: &str = include_str!("../../tests/corpus/dialect-14.f");
const CVARS: &str = include_str!("../../tests/corpus/distributions.f");
const SMALL: &str = include_str!("../../tests/corpus/minimal.f");

fn program(text: &str) -> Program {
    read("test.f", text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    read("bad.f", text, &[]).expect_err(text).to_string()
}

/// A program with one thread that has this flowop, on line 3.
fn with(flowop: &str) -> String {
    format!(
        "define file name=f,size=1m,prealloc\ndefine process name=p {{ thread name=t {{\n\
         flowop {flowop}\n}} }}\n"
    )
}

#[test]
fn the_newer_dialect_is_read() {
    let program = program(NEW);
    assert_eq!(program.sets.len(), 5);
    assert_eq!((program.rate, program.quit, program.seconds), (Some(100), Quit::AllDone, Some(95)));
    let many = &program.sets[2];
    assert_eq!((many.entries, many.prealloc, many.dir_gamma), (200, 80, 0.0));
    let size = Dist {
        round: 512,
        min: 1024,
        max: 1 << 20,
        ..Form::Gamma { mean: 16384.0, shape: 1.5 }.into()
    };
    assert_eq!(many.size, size);
    let names: Vec<_> = program.threads.iter().map(|t| (t.name.as_str(), t.instances)).collect();
    assert_eq!(names, [("files/worker", 6), ("files/blocks", 2), ("files/others", 2)]);
    assert_eq!(program.messages[0], "It is $name");
    // Each operation is there.
    let ops: std::collections::HashSet<Op> = program.acts.iter().map(|act| act.op).collect();
    assert_eq!(ops.len(), 29, "{ops:?}");
}

#[test]
fn composites_are_expanded_with_their_parameters() {
    let program = program(NEW);
    let first = &program.acts[2];
    assert_eq!((first.name.as_str(), first.source, first.fd), ("both.first.write", 1, 2));
    assert_eq!(first.size.constant(), Some(4096));
    let second = &program.acts[8];
    assert_eq!((second.name.as_str(), second.size.constant()), ("both.second.write", Some(8192)));
    assert_eq!(program.acts[1].set, Some(2), "the set is a parameter of a parameter");
    let times = program.threads[0].steps.iter().filter_map(|step| match step {
        Step::Begin { times, end } => Some((times.constant(), *end)),
        _ => None,
    });
    let times: Vec<_> = times.collect();
    assert_eq!(times, [(Some(1), 17), (Some(2), 8), (Some(3), 16)]);
}

#[test]
fn references_are_to_all_acts_of_a_name() {
    let program = program(NEW);
    let act = |name: &str| program.acts.iter().find(|act| act.name == name).expect(name);
    let target = |name: &str| {
        let targets = &act(name).targets;
        targets.iter().map(|n| program.acts[*n as usize].name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((target("post"), target("wake")), (vec!["room"], vec!["blocked"]));
    assert_eq!(target("iops"), ["readall"]);
    assert_eq!(act("room").high_water, 100);
    assert!(target("ops").is_empty(), "all acts");
}

#[test]
fn the_older_dialect_is_read() {
    let program = program(OLD);
    let set = &program.sets[0];
    assert_eq!((set.entries, set.cached, program.seconds), (200, Some(false), Some(30)));
    let size = Dist { offset: 1024.0, ..Form::Gamma { shape: 1.5, mean: 4608.0 }.into() };
    assert_eq!(set.size, size);
    let scaled = &program.acts[1].size;
    assert!((scaled.mean() - 20480.0).abs() < 1e-6, "a table with a mean is scaled");
    assert_eq!(program.acts[2].size.form, Form::Uniform { lower: 512.0, upper: 7680.0 });
    assert_eq!(program.sharing(0), Sharing::Fixed);
}

#[test]
fn each_distribution_is_read() {
    let program = program(CVARS);
    let of = |act: usize| program.acts[act].size.form.clone();
    assert_eq!(program.sets[0].size.form, Form::Erlang { order: 3, mean: 900.0 });
    assert_eq!(of(1), Form::Exponential { mean: 1000.0 });
    assert_eq!(of(2), Form::Gamma { mean: 4096.0, shape: 1.5 });
    assert_eq!(of(3), Form::Lognormal { mu: 6.0, sigma: 0.75 });
    assert_eq!(of(4), Form::Normal { mean: 5000.0, sigma: 800.0 });
    assert_eq!(of(5), Form::Triangular { lower: 100.0, upper: 1000.0, mode: 300.0 });
    assert_eq!(of(6), Form::Uniform { lower: 4096.0, upper: 8192.0 });
    assert_eq!(of(7), Form::Weibull { shape: 1.7, scale: 2000.0 });
    assert_eq!((program.quit, program.seconds), (Quit::FirstDone, None));
}

#[test]
fn a_value_may_be_set_after_its_use() {
    let program = program(SMALL);
    assert_eq!(program.sets[0].size.constant(), Some(1 << 20));
    assert_eq!(program.acts[0].name, "r");
}

#[test]
fn settings_take_the_place_of_values() {
    let set = |setting: &str| read("t.f", OLD, &[setting.to_owned()]);
    let program = set("$nfiles=50").expect("set");
    assert_eq!(program.sets[0].entries, 500, "what depends on it follows");
    let program = set("$size=cvar(type=cvar-normal,parameters=mean:10;sigma:1)").expect("set");
    assert_eq!(program.sets[0].size.form, Form::Normal { mean: 10.0, sigma: 1.0 });
    let error = set("$nfile=1").expect_err("misspelt").to_string();
    assert_eq!(
        error,
        "t.f:1: at '$nfile': the text sets no such variable; it sets $cached, $flat, $nfiles, \
         $rate, $size, $table, $total"
    );
    assert!(set("nfiles=1").expect_err("no $").to_string().starts_with("--set nfiles=1:1: at"));
}

#[test]
fn what_has_no_effect_is_listed_once() {
    let notes: Vec<String> = program(NEW).notes.into_iter().map(|note| note.text).collect();
    let listed = [
        "path",
        "paralloc",
        "trusttree",
        "memsize",
        "useism",
        "ioprio",
        "nice",
        "nousestats",
        "debug",
        "noreadahead",
        "create",
        "list",
        "sleep",
        "enable",
        "quit",
        "aiowrite",
    ];
    for word in listed {
        let count = notes.iter().filter(|note| note.starts_with(word)).count();
        assert_eq!(count, 1, "{word}: {notes:#?}");
    }
    let unpaced = with("read name=r,filename=f,iosize=1\nflowop eventlimit name=e");
    assert_eq!(program(&unpaced).notes[0].text, "eventlimit has no effect: eventgen has no rate");
}

#[test]
fn an_error_has_file_line_and_token() {
    let cases = [
        ("set $a=1\nfoo", "bad.f:2: at 'foo': expected a command"),
        ("set $a=1 2", "bad.f:1: at '2': expected a command"),
        ("set a=1", "bad.f:1: at 'a': expected a variable"),
        ("set $a=", "bad.f:1: the text ends: expected a value"),
        ("set $a=1\nset $b=$c", "bad.f:2: at '$c': the variable has no value"),
        ("set $a=99999999999999999999", "bad.f:1: at '99999999999999999999': the number is too"),
        ("set $a=9 * \"x\"", "bad.f:1: at '$a': expected a number, not a text"),
        ("set $a=1 - 2", "bad.f:1: at '$a': 1 - 2 is not a number from 0 to 2^64"),
        ("set $a=1 / 0", "bad.f:1: at '$a': 1 / 0"),
        ("set $a=%", "bad.f:1: at '%': this character"),
        ("echo \"x", "bad.f:1: at '\"': the quotation mark is not closed"),
        ("set mode quit never", "bad.f:1: at 'never': expected timeout, alldone or firstdone"),
        ("set $", "bad.f:1: at '$': a variable has a name"),
        ("set ${a=1", "bad.f:1: at '$a': the bracket"),
        ("define thing name=x", "bad.f:1: at 'thing': expected file, fileset"),
        ("define file size=1", "bad.f:1: at 'define': name= is missing"),
        ("define file name=x,sise=1", "bad.f:1: at 'sise': not an attribute here; expected name"),
        ("define file name=x,name=y", "bad.f:1: at 'name': the attribute is there twice"),
        ("define file name=x,entries=9", "bad.f:1: at 'entries': one file has no directories"),
        ("define file name=\"../x\"", "bad.f:1: at 'name': a name of files has letters"),
        ("define file name=x\ndefine file name=x", "bad.f:2: at 'define': there is a set x"),
        ("define fileset name=x,entries=9", "bad.f:1: at 'define': dirwidth= is missing"),
        ("define fileset name=x,dirwidth=9", "bad.f:1: at 'define': entries= or leafdirs="),
        ("define file name=x,prealloc=101", "bad.f:1: at 'prealloc': 101 is above 100"),
        ("define file name=x,reuse=\"a\"", "bad.f:1: at 'reuse': expected true or false, not a"),
        ("set $a=cvar(type=cvar-x)", "bad.f:1: at '$a': type is cvar-erlang"),
        ("set $a=cvar(type=cvar-gamma,parameters=m:1)", "bad.f:1: at '$a': m is not a parameter"),
        ("set $a=cvar(type=cvar-gamma,parameters=gamma:0)", "bad.f:1: at '$a': the parameters are"),
        ("set $a=randvar(type=gauss)", "bad.f:1: at '$a': type is uniform, gamma or tabular"),
        ("set $a=randvar(min=1)", "bad.f:1: at '$a': type= is missing"),
        ("set $a=randvar(type=tabular)", "bad.f:1: at '$a': type=tabular has a randtable="),
        ("define randvar name=a,type=gamma", "bad.f:1: at 'randvar': expected name=$variable"),
        ("define process name=p { }", "bad.f: no process is defined"),
        ("define process name=p { thread name=t { } }", "bad.f:1: at 'thread': the thread has no"),
        ("define process name=p { flowop", "bad.f:1: at 'flowop': expected thread or '}'"),
        ("define process name=p { thread name=t {", "bad.f:1: the text ends: expected flowop"),
        ("", "bad.f: no process is defined: there is nothing to run"),
    ];
    for (text, error) in cases {
        let got = refused(text);
        assert!(got.starts_with(error), "{text}\n  expected {error}\n  got      {got}");
    }
}

#[test]
fn an_operation_that_cannot_be_done_is_refused() {
    let cases = [
        ("frob name=x", "at 'frob': there is no such operation"),
        ("read name=x", "at 'read': filename= or fd= is missing"),
        ("read filename=f", "at 'read': name= is missing"),
        ("read name=x,filename=g", "at 'filename': no set has the name g; there are f"),
        ("read name=x,fd=128", "at 'fd': 128 is above 127"),
        ("openfile name=x,fd=1", "at 'openfile': filesetname= is missing"),
        ("makedir name=x,filesetname=f", "at 'makedir': the set has no leaf directories"),
        ("listdir name=x,filesetname=f", "at 'listdir': one file has no directories"),
        ("appendfile name=x,filename=f", "at 'appendfile': iosize= is missing"),
        ("wakeup name=x,target=y", "at 'target': no flowop has the name y"),
        ("wakeup name=x,target=x", "at 'target': wakeup cannot refer to x"),
        ("finishonbytes name=x,target=x", "at 'target': finishonbytes cannot refer to x"),
        ("print name=x", "at 'print': a thread prints nothing"),
        ("testrandvar name=x", "at 'testrandvar': it measures nothing"),
        ("read name=x,filename=f,$a=1", "at '$a': only composites have parameters"),
    ];
    for (flowop, error) in cases {
        let got = refused(&with(flowop));
        assert!(got.starts_with(&format!("bad.f:3: {error}")), "{flowop}: {got}");
    }
    assert!(refused(&with("sempost name=x")).ends_with("sempost x has no target="));
}

#[test]
fn what_a_target_cannot_do_is_refused_with_the_alternative() {
    let cases = [
        ("system \"rm -rf /\"", "bad.f:1: at 'system': a program runs no commands"),
        ("enable multi master=a,client=b", "bad.f:1: at 'enable': several machines are agents"),
        ("domultisync value=1", "bad.f:1: at 'domultisync': agents start together"),
    ];
    for (text, error) in cases {
        assert!(refused(text).starts_with(error), "{}", refused(text));
    }
}

#[test]
fn composites_are_bounded() {
    let call = with("a name=x");
    let own = format!("define flowop name=a {{ flowop a name=b }}\n{call}");
    assert!(refused(&own).contains("nested more than 8 times"), "{}", refused(&own));
    // Ten to the eighth acts.
    let mut text = String::new();
    for level in 0..8 {
        let inner = match level {
            0 => "hog name=h,value=1".to_owned(),
            _ => format!("c{} name=x", level - 1),
        };
        let ten = format!("flowop {inner}\n").repeat(10);
        text.push_str(&format!("define flowop name=c{level} {{\n{ten}}}\n"));
    }
    text.push_str(&with("c7 name=x"));
    assert!(refused(&text).contains("more than 10000 flowops"), "{}", refused(&text));
    let composite = |attrs: &str| {
        refused(&format!("define flowop name=a, $p {{ flowop hog name=h }}\n{}", with(attrs)))
    };
    assert!(composite("a name=x,$q=1").contains("at '$q': a has no such parameter"));
    assert!(composite("a name=x,fd=1").contains("at 'fd': a composite has name, iters"));
    let twice = "define flowop name=read { flowop hog name=h }";
    assert!(refused(twice).contains("there is an operation read already"));
}

#[test]
fn composites_without_acts_and_their_names_are_bounded() {
    // Without any act: 60 to the third composites.
    let mut text = "define flowop name=c0 { }\n".to_owned();
    for level in 1..4 {
        let sixty = format!("flowop c{} name=x\n", level - 1).repeat(60);
        text.push_str(&format!("define flowop name=c{level} {{\n{sixty}}}\n"));
    }
    text.push_str(&with("c3 name=x"));
    assert!(refused(&text).contains("more than 100000 composites"), "{}", refused(&text));
    // A name that each act would have a copy of.
    let name = "n".repeat(crate::limits::NAME_MAX);
    let long = |name: &str| {
        let composite = "define flowop name=a { flowop hog name=h,value=1 }";
        read("n.f", &format!("{composite}\n{}", with(&format!("a name={name}"))), &[])
    };
    let error = long(&name).expect_err("a long name").to_string();
    assert!(error.contains("its name has more than 1024 bytes"), "{error}");
    assert!(long(&name[2..]).is_ok());
}

#[test]
fn sizes_of_texts_are_bounded() {
    let long = "#".repeat(crate::limits::TEXT_MAX + 1);
    assert!(refused(&long).contains("more than 1048576 bytes"));
    assert!(
        refused(&"=".repeat(crate::limits::TOKENS_MAX + 1)).contains("more than 200000 tokens")
    );
    let deep = format!("set $a={}", "(".repeat(100_000));
    assert!(refused(&deep).contains("nested too deeply"));
    let long = format!("set $a=1{}", " + 1".repeat(1000));
    assert!(refused(&long).contains("the expression is too long"));
    let many = with("read name=r,filename=f,iosize=1").replace("name=t", "name=t,instances=200000");
    assert!(refused(&many).contains("200000 is above 100000"));
}
