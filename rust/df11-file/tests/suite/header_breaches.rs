//! Every way to break the header's rules, with the code and the tensor that the refusal must name.

use df11_file::{
    Code, Error,
    header::{self, Header},
};

const DATA: u64 = 16;

fn parse(json: &str) -> Result<Header, Error> {
    header::parse(json.as_bytes(), DATA)
}

fn tensor(name: &str, dtype: &str, shape: &str, offsets: &str) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
}

/// A header of the given members and a sound tensor for what is left of 16 bytes of data from `from`.
fn with_rest(members: &[String], from: u64) -> String {
    let rest = tensor(
        "rest",
        "U8",
        &format!("[{}]", DATA - from),
        &format!("[{from},{DATA}]"),
    );
    format!("{{{},{rest}}}", members.join(","))
}

#[test]
fn the_helpers_make_sound_headers() {
    let header = parse(&with_rest(&[tensor("a", "F32", "[2]", "[0,8]")], 8)).unwrap();
    assert_eq!(header.tensors.len(), 2);
    assert_eq!(header.data_bytes, DATA);
}

#[test]
fn faults_of_one_tensor_name_it() {
    let bad = [
        ("unknown dtype", tensor("bad", "F33", "[2]", "[0,8]")),
        (
            "dtype of another case",
            tensor("bad", "f32", "[2]", "[0,8]"),
        ),
        ("too few bytes", tensor("bad", "F32", "[3]", "[0,8]")),
        ("too many bytes", tensor("bad", "F32", "[1]", "[0,8]")),
        ("half a byte", tensor("bad", "F4", "[15]", "[0,8]")),
        ("backwards", tensor("bad", "F32", "[2]", "[8,0]")),
        (
            "product overflows",
            tensor("bad", "U8", "[4294967296,4294967296]", "[0,8]"),
        ),
        (
            "product overflows before a zero",
            tensor("bad", "U8", "[4294967296,4294967296,0]", "[0,0]"),
        ),
        (
            "bits overflow",
            tensor("bad", "F64", "[2305843009213693951]", "[0,8]"),
        ),
        ("negative side", tensor("bad", "F32", "[-2]", "[0,8]")),
        ("fractional side", tensor("bad", "F32", "[2.0]", "[0,8]")),
        (
            "side beyond 64 bits",
            tensor("bad", "F32", "[18446744073709551616]", "[0,8]"),
        ),
        (
            "offset beyond 64 bits",
            tensor("bad", "F32", "[2]", "[0,18446744073709551624]"),
        ),
        ("three offsets", tensor("bad", "F32", "[2]", "[0,8,8]")),
        ("one offset", tensor("bad", "F32", "[2]", "[0]")),
        ("shape is text", tensor("bad", "F32", "\"2\"", "[0,8]")),
        (
            "no shape",
            r#""bad":{"dtype":"F32","data_offsets":[0,8]}"#.to_owned(),
        ),
        (
            "unknown field",
            r#""bad":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}"#.to_owned(),
        ),
        (
            "field twice",
            r#""bad":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}"#.to_owned(),
        ),
        ("null", r#""bad":null"#.to_owned()),
        ("text", r#""bad":"F32""#.to_owned()),
        ("metadata of another name", r#""bad":{"a":"b"}"#.to_owned()),
    ];
    for (what, member) in bad {
        let error = parse(&with_rest(&[member], 8)).expect_err(what);
        assert_eq!(error.code, Code::Header, "{what}: {error}");
        assert_eq!(error.tensor.as_deref(), Some("bad"), "{what}: {error}");
        assert!(!error.hint.is_empty(), "{what}");
    }
}

#[test]
fn names_given_twice_are_named() {
    let equal = tensor("twice", "U8", "[8]", "[0,8]");
    let other = tensor("twice", "U8", "[4]", "[8,12]");
    let empty = tensor("twice", "U8", "[0]", "[8,8]");
    for second in [equal.clone(), other, empty] {
        let error = parse(&with_rest(&[equal.clone(), second], 8)).expect_err("a name twice");
        assert_eq!(
            (error.code, error.tensor.as_deref()),
            (Code::Header, Some("twice"))
        );
        assert!(error.message.contains("twice in the header"), "{error}");
    }
}

#[test]
fn faults_between_tensors_name_the_later_one() {
    let first = || tensor("first", "U8", "[8]", "[0,8]");
    let cases = [
        (
            "overlap",
            tensor("bad", "U8", "[4]", "[6,10]"),
            10,
            "overlaps",
        ),
        (
            "same range",
            tensor("second", "U8", "[8]", "[0,8]"),
            8,
            "overlaps",
        ),
        ("inside", tensor("bad", "U8", "[2]", "[3,5]"), 8, "overlaps"),
        (
            "empty, inside another",
            tensor("bad", "U8", "[0]", "[4,4]"),
            8,
            "overlaps",
        ),
        (
            "hole",
            tensor("bad", "U8", "[4]", "[9,13]"),
            13,
            "leaves a hole",
        ),
    ];
    for (what, member, rest, words) in cases {
        let error = parse(&with_rest(&[first(), member], rest)).expect_err(what);
        assert_eq!(error.code, Code::Header, "{what}");
        assert!(error.message.contains(words), "{what}: {error}");
        assert!(
            ["bad", "second"].contains(&error.tensor.as_deref().unwrap()),
            "{what}: {error}"
        );
    }
    let error = parse(&format!("{{{}}}", tensor("late", "U8", "[8]", "[8,16]"))).expect_err("hole");
    assert_eq!(error.tensor.as_deref(), Some("late"));
}

#[test]
fn data_of_another_size() {
    let json = format!("{{{}}}", tensor("a", "U8", "[8]", "[0,8]"));
    let parse = |data_bytes| header::parse(json.as_bytes(), data_bytes).map(|_| ());
    parse(8).unwrap();
    assert_eq!(parse(7).unwrap_err().code, Code::Truncated);
    assert_eq!(parse(0).unwrap_err().code, Code::Truncated);
    assert_eq!(parse(9).unwrap_err().code, Code::TrailingBytes);
}

#[test]
fn faults_of_the_text() {
    let sound = format!("{{{}}}", tensor("a", "U8", "[16]", "[0,16]"));
    let bad = [
        String::new(),
        " ".to_owned(),
        format!(" {sound}"),
        "[]".to_owned(),
        "{".to_owned(),
        sound.trim_end_matches('}').to_owned(),
        format!("{sound}x"),
        format!("{sound}\0"),
        sound.replace("\"a\"", "a"),
        sound.replace("[16]", "[16,]"),
        sound.replace("[16]", "[016]"),
        sound.replace(
            ":[16]",
            &format!(":{}1{}", "[".repeat(5000), "]".repeat(5000)),
        ),
    ];
    for json in bad {
        let error = parse(&json).expect_err(&json);
        assert_eq!(error.code, Code::Header, "{json}");
    }
    let not_text = [b"{\"\xff\":1}".as_slice(), b"{\"a\x01\":1}"];
    for json in not_text {
        assert_eq!(header::parse(json, DATA).unwrap_err().code, Code::Header);
    }
}

#[test]
fn metadata() {
    let with = |metadata: &str| parse(&with_rest(&[format!(r#""__metadata__":{metadata}"#)], 0));
    for bad in [
        r#"{"a":1}"#,
        r#"{"a":null}"#,
        r#"{"a":{"b":"c"}}"#,
        r#"["a"]"#,
        r#""a""#,
        "1",
    ] {
        let error = with(bad).expect_err(bad);
        assert_eq!(error.code, Code::Header, "{bad}");
        assert_eq!(
            error.tensor.as_deref(),
            Some("__metadata__"),
            "{bad}: {error}"
        );
    }
    let twice = with(r#"{"a":"b","a":"b"}"#).expect_err("a key twice");
    assert!(twice.message.contains("key a occurs twice"), "{twice}");
    let tensor_named_so = parse(&with_rest(
        &[tensor("__metadata__", "U8", "[8]", "[0,8]")],
        8,
    ));
    assert_eq!(tensor_named_so.unwrap_err().code, Code::Header);
    let two = parse(&with_rest(
        &[r#""__metadata__":{},"__metadata__":{}"#.to_owned()],
        0,
    ));
    assert_eq!(two.unwrap_err().code, Code::Header);

    assert!(with("{}").unwrap().metadata.is_empty());
    assert!(with("null").unwrap().metadata.is_empty());
    let header = with(r#"{"z":"1","a":"\u00e4 \ud83d\ude00"}"#).unwrap();
    assert_eq!(header.meta("a"), Some("ä 😀"));
    assert_eq!(header.metadata[0].0, "z", "the file's order is kept");
}

#[test]
fn odd_but_legal() {
    let empty = |name: &str, at: u64| tensor(name, "F32", "[3,0]", &format!("[{at},{at}]"));
    let members = [
        empty("at the start", 0),
        tensor("", "BOOL", "[1]", "[0,1]"),
        empty("twice at one place", 1),
        empty("empty in between", 1),
        tensor("odd \\u00e9\\n\\\"", "F64", "[]", "[1,9]"),
        tensor("日本", "F4", "[2,1]", "[9,10]"),
    ];
    let json = with_rest(&members, 10)
        .replace(',', " ,\r\n\t ")
        .replace(':', " : ");
    let header = parse(&format!("{json}      ")).unwrap();
    assert_eq!(header.tensors.len(), 7);
    assert_eq!(header.tensors[4].name, "odd é\n\"");
    assert_eq!(
        (header.tensors[4].start, header.tensors[4].elements()),
        (1, 1)
    );
    assert_eq!(header.tensors[0].elements(), 0);
    assert!(header::parse(b"{}", 0).unwrap().tensors.is_empty());
}
