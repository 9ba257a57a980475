//! What a call failed with.

/// Names of 0 to 133 in the numbering of `asm-generic/errno.h` (also x86 and Arm); empty for unused
/// numbers.
const NAMES: [&str; 134] = [
    "",
    "EPERM",
    "ENOENT",
    "ESRCH",
    "EINTR",
    "EIO",
    "ENXIO",
    "E2BIG",
    "ENOEXEC",
    "EBADF",
    "ECHILD",
    "EAGAIN",
    "ENOMEM",
    "EACCES",
    "EFAULT",
    "ENOTBLK",
    "EBUSY",
    "EEXIST",
    "EXDEV",
    "ENODEV",
    "ENOTDIR",
    "EISDIR",
    "EINVAL",
    "ENFILE",
    "EMFILE",
    "ENOTTY",
    "ETXTBSY",
    "EFBIG",
    "ENOSPC",
    "ESPIPE",
    "EROFS",
    "EMLINK",
    "EPIPE",
    "EDOM",
    "ERANGE",
    "EDEADLK",
    "ENAMETOOLONG",
    "ENOLCK",
    "ENOSYS",
    "ENOTEMPTY",
    "ELOOP",
    "",
    "ENOMSG",
    "EIDRM",
    "ECHRNG",
    "EL2NSYNC",
    "EL3HLT",
    "EL3RST",
    "ELNRNG",
    "EUNATCH",
    "ENOCSI",
    "EL2HLT",
    "EBADE",
    "EBADR",
    "EXFULL",
    "ENOANO",
    "EBADRQC",
    "EBADSLT",
    "",
    "EBFONT",
    "ENOSTR",
    "ENODATA",
    "ETIME",
    "ENOSR",
    "ENONET",
    "ENOPKG",
    "EREMOTE",
    "ENOLINK",
    "EADV",
    "ESRMNT",
    "ECOMM",
    "EPROTO",
    "EMULTIHOP",
    "EDOTDOT",
    "EBADMSG",
    "EOVERFLOW",
    "ENOTUNIQ",
    "EBADFD",
    "EREMCHG",
    "ELIBACC",
    "ELIBBAD",
    "ELIBSCN",
    "ELIBMAX",
    "ELIBEXEC",
    "EILSEQ",
    "ERESTART",
    "ESTRPIPE",
    "EUSERS",
    "ENOTSOCK",
    "EDESTADDRREQ",
    "EMSGSIZE",
    "EPROTOTYPE",
    "ENOPROTOOPT",
    "EPROTONOSUPPORT",
    "ESOCKTNOSUPPORT",
    "EOPNOTSUPP",
    "EPFNOSUPPORT",
    "EAFNOSUPPORT",
    "EADDRINUSE",
    "EADDRNOTAVAIL",
    "ENETDOWN",
    "ENETUNREACH",
    "ENETRESET",
    "ECONNABORTED",
    "ECONNRESET",
    "ENOBUFS",
    "EISCONN",
    "ENOTCONN",
    "ESHUTDOWN",
    "ETOOMANYREFS",
    "ETIMEDOUT",
    "ECONNREFUSED",
    "EHOSTDOWN",
    "EHOSTUNREACH",
    "EALREADY",
    "EINPROGRESS",
    "ESTALE",
    "EUCLEAN",
    "ENOTNAM",
    "ENAVAIL",
    "EISNAM",
    "EREMOTEIO",
    "EDQUOT",
    "ENOMEDIUM",
    "EMEDIUMTYPE",
    "ECANCELED",
    "ENOKEY",
    "EKEYEXPIRED",
    "EKEYREVOKED",
    "EKEYREJECTED",
    "EOWNERDEAD",
    "ENOTRECOVERABLE",
    "ERFKILL",
    "EHWPOISON",
];

/// The name of a (positive) error number: `ENOENT` for 2.
///
/// The numbering is asm-generic's, which every [`Arch`](crate::Arch) here shares. Above it are the
/// kernel's own codes, which programs never see but `sys_exit` events do ([`restarts`]).
pub fn errno_name(errno: u32) -> Option<&'static str> {
    Some(match errno {
        512 => "ERESTARTSYS",
        513 => "ERESTARTNOINTR",
        514 => "ERESTARTNOHAND",
        515 => "ENOIOCTLCMD",
        516 => "ERESTART_RESTARTBLOCK",
        517 => "EPROBE_DEFER",
        518 => "EOPENSTALE",
        524 => "ENOTSUPP",
        _ => return NAMES.get(errno as usize).copied().filter(|name| !name.is_empty()),
    })
}

/// Whether the call did not fail: a signal interrupted it, and unless a handler says otherwise the
/// kernel restarts it. The wait goes on, under the same number or as `restart_syscall`.
pub fn restarts(errno: u32) -> bool {
    matches!(errno, 512 | 513 | 514 | 516)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (errno, name) in [
            (1, "EPERM"),
            (2, "ENOENT"),
            (4, "EINTR"),
            (11, "EAGAIN"),
            (35, "EDEADLK"),
            (38, "ENOSYS"),
            (42, "ENOMSG"),
            (59, "EBFONT"),
            (110, "ETIMEDOUT"),
            (115, "EINPROGRESS"),
            (133, "EHWPOISON"),
            (512, "ERESTARTSYS"),
            (516, "ERESTART_RESTARTBLOCK"),
        ] {
            assert_eq!(errno_name(errno), Some(name));
        }
        for errno in [0, 41, 58, 134, 511, 519, u32::MAX] {
            assert_eq!(errno_name(errno), None, "{errno}");
        }
        assert_eq!((1..=133).filter(|&e| errno_name(e).is_some()).count(), 131);
    }

    #[test]
    fn restarting() {
        let codes: Vec<u32> = (0..600).filter(|&e| restarts(e)).collect();
        assert_eq!(codes, [512, 513, 514, 516]);
    }
}
