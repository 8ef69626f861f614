//! Parsing of ends, and the drops that the kernel counts for a device.

use super::*;

#[test]
fn ends_read_as_they_are_documented() {
    let end: End = "ns:a@10.9.0.1/24".parse().expect("an end");
    assert_eq!(end.place, NetworkNamespace::Named("a".to_owned()));
    assert_eq!((end.address, end.prefix), ([10, 9, 0, 1].into(), 24));
    assert_eq!(end.device, None);
    let end: End = "pid:77,tun5@fd00::1/64".parse().expect("an end");
    assert_eq!((end.place, end.prefix), (NetworkNamespace::Process(77), 64));
    assert_eq!(end.device.as_deref(), Some("tun5"));
    let end: End = "here@192.0.2.1/32".parse().expect("an end");
    assert_eq!(end.place.to_string(), "here");
}

#[test]
fn what_is_no_end_is_refused() {
    for text in [
        "",
        "ns:a",
        "ns:a@10.9.0.1",
        "ns:a@10.9.0.1/33",
        "ns:a@10.9.0.1/0",
        "ns:@10.9.0.1/24",
        "ns:../x@10.9.0.1/24",
        "ns:..@10.9.0.1/24",
        "pid:x@10.9.0.1/24",
        "there@10.9.0.1/24",
        "here,a/b@10.9.0.1/24",
        "here,a_name_that_is_too_long@10.9.0.1/24",
        "here@10.9.0.x/24",
    ] {
        assert!(text.parse::<End>().is_err(), "{text}");
    }
}

#[test]
fn drops_are_read_of_the_device_and_of_what_it_sends() {
    let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo:  100 1 0 9 0 0 0 0   100 1 0 8 0 0 0 0
   wan:  200 2 0 3 0 0 0 0   300 4 5 42 0 0 0 0
wan2: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
";
    assert_eq!(dropped_sending(text, "wan"), Some(42));
    assert_eq!(dropped_sending(text, "wan3"), None);
}
