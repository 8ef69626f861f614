//! Keys and digests, by vectors that others have published.

use super::super::codec::Field;
use super::super::header::Header;
use base::md4;

use super::*;

fn hex<const N: usize>(text: &str) -> [u8; N] {
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
    assert_eq!(text.len(), 2 * N);
    std::array::from_fn(byte)
}

/// RFC 1320, appendix A.5.
#[test]
fn md4_of_rfc_1320() {
    for (text, digest) in [
        ("", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        ("a", "bde52cb31de33e46245e05fbdbd6fb24"),
        ("abc", "a448017aaf21d8525fc10ae87aa6729d"),
        ("message digest", "d9130a8164549fe818874806e1c7014b"),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "e33b4ddc9c38f2199c3e7b164fcc0536",
        ),
    ] {
        assert_eq!(md4::digest(text.as_bytes()), hex(digest), "{text}");
    }
}

/// RFC 2202 §2, the first, second and sixth.
#[test]
fn hmac_md5_of_rfc_2202() {
    assert_eq!(hmac_md5(&[0x0b; 16], &[b"Hi There"]), hex("9294727a3638bb1c13f48ef8158bfc9d"));
    let (one, two) = (&b"what do ya want "[..], &b"for nothing?"[..]);
    assert_eq!(hmac_md5(b"Jefe", &[one, two]), hex("750c783e6ab0b503eaa86e310a5db738"));
    let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
    assert_eq!(hmac_md5(&[0xaa; 80], &[long]), hex("6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"));
}

/// RFC 6229, the key of 40 bits.
#[test]
fn rc4_of_rfc_6229() {
    let mut bytes = [0; 16];
    rc4::Rc4::new(&[1, 2, 3, 4, 5]).apply(&mut bytes);
    assert_eq!(bytes, hex("b2396305f03dc027ccc3524a0a1118a8"));
}

/// "SMB 2 and SMB 3 security in Windows 10: the anatomy of signing and cryptographic keys"
/// (Microsoft Open Specifications), appendix. What is called EncryptionKey there is the client's.
#[test]
fn keys_of_smb_3() {
    let half = |key: [u8; 32]| -> [u8; 16] { key[..16].try_into().unwrap() };
    let key: [u8; 16] = hex("7CD451825D0450D235424E44BA6E78CC");
    let derive = |label: &[u8], context: &[u8]| half(kdf(&key, label, context, 128));
    let sign = derive(b"SMB2AESCMAC\0", b"SmbSign\0");
    assert_eq!(sign, hex("0B7E9C5CAC36C0F6EA9AB275298CEDCE"));
    let theirs = derive(b"SMB2AESCCM\0", b"ServerIn \0");
    assert_eq!(theirs, hex("FAD27796665B313EBB578F388632B4F7"));
    let ours = derive(b"SMB2AESCCM\0", b"ServerOut\0");
    assert_eq!(ours, hex("B0F0427F7CEB416D1D9DCC0CD4F99447"));

    let key: [u8; 16] = hex("270E1BA896585EEB7AF3472D3B4C75A7");
    let preauth: [u8; 64] = hex(concat!(
        "0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79",
        "28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01",
    ));
    let derive = |label: &[u8]| half(kdf(&key, label, &preauth, 128));
    assert_eq!(derive(b"SMBSigningKey\0"), hex("73FE7A9A77BEF0BDE49C650D8CCB5F76"));
    assert_eq!(derive(b"SMBC2SCipherKey\0"), hex("629BCBC54422A0F572B97F45989B6073"));
    assert_eq!(derive(b"SMBS2CCipherKey\0"), hex("E2AF0DCEFAC68DA71A0DFBD0D1350D74"));
}

/// A message of this many bytes, with a header.
fn message(size: usize) -> Vec<u8> {
    let header = Header {
        credit_charge: 1,
        status: 0,
        command: super::super::header::Command::READ,
        credits: 1,
        flags: flags::RESPONSE | flags::SIGNED,
        next: 0,
        message_id: 7,
        id: 0,
        session_id: 9,
        signature: [0; 16],
    };
    let mut message = Vec::new();
    header.put(&mut message);
    message.extend((0..size).map(|at| at as u8));
    message
}

#[test]
fn what_is_signed_cannot_be_changed() {
    for signing in Signing::ALL {
        let signer = Signer::new(signing, &[7; 16]).unwrap();
        let mut message = message(100);
        signer.seal(&mut message).unwrap();
        let sealed = message.clone();
        assert_eq!(signer.verify(&mut message), Ok(()));
        assert_eq!(message, sealed);
        for at in [4, 16, 24, 47, 48, 63, 64, 163] {
            let mut other = message.clone();
            other[at] ^= 1;
            assert!(signer.verify(&mut other).is_err(), "{signing:?}: byte {at}");
        }
        let other = Signer::new(signing, &[8; 16]).unwrap();
        assert_eq!(other.verify(&mut message), Err(CryptoError::Mismatch));
    }
}

#[test]
fn what_is_sealed_cannot_be_changed() {
    for cipher in Cipher::ALL {
        for size in [0, 1, 15, 16, 17, 4095, 4096, 4097, 70_000] {
            let sealer = Sealer::new(cipher, &[3; 32]).unwrap();
            let plain = message(size);
            let mut sealed = vec![0; TRANSFORM];
            sealed.extend_from_slice(&plain);
            sealer.seal(&mut sealed, 9, 1).unwrap();
            assert_ne!(sealed[TRANSFORM..], plain);
            let mut opened = sealed.clone();
            let transform = sealer.open(&mut opened).unwrap();
            assert_eq!((transform.session_id, &opened[TRANSFORM..]), (9, &plain[..]));
            for at in [4, 20, 44, TRANSFORM, sealed.len() - 1] {
                let mut other = sealed.clone();
                other[at] ^= 1;
                assert!(sealer.open(&mut other).is_err(), "{cipher:?}: byte {at}");
            }
        }
    }
}

/// With the lengths of SMB, as OpenSSL computes it (`AESCCM` of Python's `cryptography`).
#[test]
fn ccm_is_that_of_others() {
    let key: [u8; 16] = std::array::from_fn(|at| at as u8);
    let nonce: [u8; 11] = std::array::from_fn(|at| 0x40 + at as u8);
    let aad: [u8; 32] = std::array::from_fn(|at| 0x80 + at as u8);
    let mut text: Vec<u8> = (0..40).collect();
    let tag = ccm::Ccm::new(&key).unwrap().seal(&nonce, &aad, &mut text).unwrap();
    assert_eq!(tag, hex("16bbe95fbec3c544080d06bff2b738b2"));
    assert_eq!(text[..16], hex::<16>("f940ef748d3b388f22a775b3dc1dcfaa"));
}

/// "Encryption in SMB 3.0: A protocol perspective" (Microsoft Open Specifications): a WRITE.
#[test]
fn ccm_of_microsofts_example() {
    let key: [u8; 16] = hex("261B72350558F2E9DCF613070383EDBF");
    let nonce: [u8; 11] = hex("66E69A111892584FB5ED52");
    let aad: [u8; 32] = hex("66E69A111892584FB5ED524A744DA3EE87000000000001001100001400E40800");
    let packet: [u8; 135] = hex(concat!(
        "FE534D4240000100000000000900400008000000000000000400000000000000",
        "FFFE0000010000001100001400E4080000000000000000000000000000000000",
        "3100700017000000000000000000000015010000390000020100000039020000",
        "00000000000000007000000000000000536D623320656E6372797074696F6E20",
        "74657374696E67",
    ));
    let mut text = packet;
    let tag = ccm::Ccm::new(&key).unwrap().seal(&nonce, &aad, &mut text).unwrap();
    assert_eq!(tag, hex("81A286535415445DAE393921E44FA42E"));
    let begin: [u8; 32] = hex("25C8FEE16605A437832D1CD52DA9F4645333482A175FE5384563F45FCDAFAEF3");
    assert_eq!(text[..32], begin);
}
