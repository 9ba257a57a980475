//! A control group by the name that users know: a service, a container, a pod.
//!
//! The kernel knows paths. The creator of a group encodes its purpose in the path:
//!
//! ```text
//!  /system.slice/nginx.service                                   nginx.service
//!  …/user@1000.service/app.slice/x.service            user@1000.service/app.slice/x.service
//!  /system.slice/docker-<64 hex>.scope, /docker/<64 hex>         docker:0123456789ab
//!  /machine.slice/libpod-<64 hex>.scope/container                podman:0123456789ab
//!  /kubepods.slice/…-pod<uid>.slice/cri-containerd-<64 hex>.scope   pod:<uid>/0123456789ab
//!  /lxc.payload.web/system.slice/nginx.service                   lxc:web/nginx.service
//!  /build/tests                                                  build/tests
//! ```
//!
//! From systemd's `systemd.slice(5)`, `cgroupfs` and `systemd` drivers of runc and crun, the
//! kubelet's `cgroup_manager_linux.go`, podman's `libpod/container_internal_linux.go`, and LXC's
//! `cgfsng.c`.

use super::Groups;
use crate::names::fits;

/// Digits of a container id in the output of engines.
const SHORT: usize = 12;

/// What the path of a control group says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName<'a> {
    /// The pod of Kubernetes that it belongs to: its UID.
    pub pod: Option<String>,
    /// The container; the innermost if they are nested.
    pub container: Option<Container<'a>>,
    /// The group within pod and container, or the unit of systemd with what is below it; empty if
    /// it is the container's or pod's own group.
    pub unit: String,
}

/// A container, by the name of its control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    /// Its engine: `docker`, `podman`, `containerd`, `cri-o`, `lxc`; `container` if the path does
    /// not tell.
    pub engine: &'a str,
    /// Its full id; for LXC its name.
    pub id: &'a str,
}

impl Container<'_> {
    /// The id in the engines' short form: twelve digits.
    pub fn short_id(&self) -> &str {
        if is_id(self.id) { &self.id[..SHORT] } else { self.id }
    }
}

impl<'a> GroupName<'a> {
    /// Parses `path`, which is relative to the mount of control groups.
    pub fn of(path: &'a str) -> GroupName<'a> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let mut name = GroupName { pod: None, container: None, unit: String::new() };
        let mut inner = 0;
        for (i, part) in parts.iter().enumerate() {
            let before = i.checked_sub(1).map_or("", |i| parts[i]);
            if let Some(uid) = pod_uid(part.split(':').next().unwrap_or(part)) {
                (name.pod, name.container, inner) = (Some(uid), None, i + 1);
            }
            if let Some(container) = container(part, before) {
                (name.container, inner) = (Some(container), i + 1);
            }
        }
        name.unit = match &parts[inner..] {
            // podman's and LXC's names for the payload within their own group.
            ["container" | "payload" | "ns"] if name.container.is_some() => String::new(),
            // Slices within a container or a pod belong to it.
            rest => unit(rest),
        };
        name
    }

    /// Whether `pattern` matches the group, whose path is `path`: its name in words, its path or a
    /// part of that, or the container's id or name. In a pattern `*` and `?` stand for any
    /// characters. A pattern for a group also matches the groups within it.
    pub fn fits(&self, pattern: &str, path: &str, groups: &Groups) -> bool {
        let of_container = self.container.is_some_and(|c| {
            let called = groups.container(c.id);
            // Engines accept any prefix of an id; this one is too long for chance.
            pattern.len() >= SHORT / 2 && c.id.starts_with(pattern)
                || called.is_some_and(|called| fits(pattern, called))
        });
        let plain = path.trim_start_matches('/');
        of_container
            || fits(pattern, &self.words(groups))
            || fits(pattern, path)
            || fits(pattern, plain)
            || plain.split('/').any(|part| {
                // systemctl accepts this too.
                let service = part.strip_suffix(".service");
                fits(pattern, part) || service.is_some_and(|name| fits(pattern, name))
            })
    }

    /// The name: one word, without blanks except those of the path. Containers have their names
    /// from `groups`.
    pub fn words(&self, groups: &Groups) -> String {
        let mut words = String::new();
        if let Some(uid) = &self.pod {
            words = format!("pod:{uid}");
        }
        if let Some(container) = &self.container {
            let called = groups.container(container.id).unwrap_or(container.short_id());
            words = match words.is_empty() {
                true => format!("{}:{called}", container.engine),
                false => format!("{words}/{called}"),
            };
        }
        match (words.is_empty(), self.unit.is_empty()) {
            (true, true) => "/".to_owned(),
            (true, false) => self.unit.clone(),
            (false, true) => words,
            (false, false) => format!("{words}/{}", self.unit),
        }
    }
}

/// The path from the first service or scope on; of slices only the last; else the whole path.
fn unit(parts: &[&str]) -> String {
    let is_unit = |part: &&str| part.ends_with(".service") || part.ends_with(".scope");
    if let Some(first) = parts.iter().position(is_unit) {
        return parts[first..].join("/");
    }
    match parts {
        [.., last] if parts.iter().all(|part| part.ends_with(".slice")) => (*last).to_owned(),
        parts => parts.join("/"),
    }
}

/// The UID in `pod1234…`, `kubepods-burstable-pod1234_….slice`: 36 digits and dashes, or 32 digits
/// for pods that the kubelet makes by itself.
fn pod_uid(part: &str) -> Option<String> {
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let at = part.rfind("pod")?;
    if at > 0 && !part[..at].ends_with('-') {
        return None;
    }
    let uid = part[at + 3..].replace('_', "-");
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    let dashes = uid.bytes().filter(|&b| b == b'-').count();
    (digits == 32 && matches!(dashes, 0 | 4) && uid.len() == digits + dashes).then_some(uid)
}

/// The container of a group named `part` within a group named `before`.
fn container<'a>(part: &'a str, before: &'a str) -> Option<Container<'a>> {
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(Container { engine: "lxc", id: name });
    }
    if let Some(name) = part.strip_prefix("lxc.monitor.") {
        return Some(Container { engine: "lxc-monitor", id: name });
    }
    if before == "lxc" {
        return Some(Container { engine: "lxc", id: part });
    }
    // `kubepods-burstable-pod….slice:cri-containerd:<id>`: containerd's version of the kubelet's
    // name if the two use different drivers.
    let colons: Vec<&str> = part.split(':').collect();
    if let [_, engine, id] = colons[..]
        && is_id(id)
    {
        return Some(Container { engine: known(engine), id });
    }
    let stem = part.strip_suffix(".scope").unwrap_or(part);
    if is_id(stem) {
        let engine = match before {
            "docker" => "docker",
            "libpod_parent" => "podman",
            "k8s.io" | "moby" | "default" => "containerd",
            _ => "container",
        };
        return Some(Container { engine, id: stem });
    }
    let (engine, id) = stem.rsplit_once('-')?;
    is_id(id).then(|| Container { engine: known(engine), id })
}

/// The usual name of the engine that puts this prefix before an id.
fn known(prefix: &str) -> &str {
    match prefix {
        "libpod" | "libpod-payload" => "podman",
        "libpod-conmon" => "podman-conmon",
        "cri-containerd" | "nerdctl" => "containerd",
        "crio" => "cri-o",
        "crio-conmon" => "cri-o-conmon",
        other => other,
    }
}

/// 64 hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "1b2c3d4e-0001-4abc-8def-0123456789ab";

    fn words(path: &str) -> String {
        let path = path.replace("UID_", &UID.replace('-', "_")).replace("UID", UID);
        let path = path.replace("ID", ID);
        GroupName::of(&path).words(&Groups::default())
    }

    #[test]
    fn units_of_systemd() {
        for (path, name) in [
            ("/", "/"),
            ("", "/"),
            ("/init.scope", "init.scope"),
            ("/system.slice", "system.slice"),
            ("/system.slice/nginx.service", "nginx.service"),
            ("/system.slice/nginx.service/worker", "nginx.service/worker"),
            ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"),
            ("/user.slice/user-1000.slice", "user-1000.slice"),
            ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope",
                "user@1000.service/app.slice/app-x.scope",
            ),
            ("/machine.slice/machine-web.scope/payload", "machine-web.scope/payload"),
        ] {
            assert_eq!(words(path), name, "{path}");
        }
    }

    #[test]
    fn containers_of_each_engine() {
        for (path, name) in [
            ("/system.slice/docker-ID.scope", "docker:0123456789ab"),
            ("/docker/ID", "docker:0123456789ab"),
            ("/docker/ID/init.scope", "docker:0123456789ab/init.scope"),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-ID.scope",
                "docker:0123456789ab",
            ),
            ("/machine.slice/libpod-ID.scope", "podman:0123456789ab"),
            ("/machine.slice/libpod-ID.scope/container", "podman:0123456789ab"),
            ("/machine.slice/libpod-conmon-ID.scope", "podman-conmon:0123456789ab"),
            ("/libpod_parent/libpod-ID", "podman:0123456789ab"),
            ("/default/ID", "containerd:0123456789ab"),
            ("/system.slice/nerdctl-ID.scope", "containerd:0123456789ab"),
            ("/ecs/0f/ID", "container:0123456789ab"),
            ("/lxc/web", "lxc:web"),
            ("/lxc.payload.web", "lxc:web"),
            ("/lxc.payload.web/system.slice/nginx.service", "lxc:web/nginx.service"),
            ("/lxc.monitor.web", "lxc-monitor:web"),
        ] {
            assert_eq!(words(path), name, "{path}");
        }
    }

    #[test]
    fn pods_with_either_driver() {
        let pod = format!("pod:{UID}");
        let of = format!("{pod}/0123456789ab");
        for (path, name) in [
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID_.slice/\
                 cri-containerd-ID.scope",
                &of,
            ),
            ("/kubepods.slice/kubepods-podUID_.slice/crio-ID.scope", &of),
            ("/kubepods/besteffort/podUID/ID", &of),
            ("/kubepods/podUID", &pod),
            ("/kubepods.slice/kubepods-podUID_.slice", &pod),
            ("/system.slice/containerd.service/kubepods-podUID_.slice:cri-containerd:ID", &of),
            // A cluster that runs in a container.
            ("/docker/ID/kubelet/kubepods/podUID/ID", &of),
        ] {
            assert_eq!(&words(path), name, "{path}");
        }
        let own = "fedcba9876543210fedcba9876543210";
        let path = format!("/kubepods/burstable/pod{own}/{ID}");
        let words = GroupName::of(&path).words(&Groups::default());
        assert_eq!(words, format!("pod:{own}/0123456789ab"));
        assert_eq!(GroupName::of("/kubepods/podium").pod, None);
        assert_eq!(GroupName::of("/tripod1").words(&Groups::default()), "tripod1");
    }

    #[test]
    fn groups_of_ones_own_are_their_paths() {
        assert_eq!(words("/build/tests"), "build/tests");
        assert_eq!(words("/a b"), "a b");
        assert_eq!(words("/docker"), "docker");
        assert_eq!(words("/docker-0123"), "docker-0123");
    }

    #[test]
    fn a_container_goes_by_its_name_where_that_is_known() {
        let groups = Groups { containers: vec![(ID.to_owned(), "web".to_owned())], limits: vec![] };
        let called = |path: String| GroupName::of(&path).words(&groups);
        assert_eq!(called(format!("/docker/{ID}")), "docker:web");
        assert_eq!(called(format!("/kubepods/pod{UID}/{ID}")), format!("pod:{UID}/web"));
    }

    #[test]
    fn a_group_is_meant_by_any_of_its_names() {
        let groups = Groups { containers: vec![(ID.to_owned(), "web".to_owned())], limits: vec![] };
        let path = format!("/system.slice/docker-{ID}.scope");
        let fit = |pattern: &str, path: &str| GroupName::of(path).fits(pattern, path, &groups);
        for pattern in ["docker:web", "web", "docker:*", "system.slice", "012345", ID, "*web*"] {
            assert!(fit(pattern, &path), "{pattern}");
        }
        for pattern in ["docker", "we", "01", "user.slice", "fedcba"] {
            assert!(!fit(pattern, &path), "{pattern}");
        }
        assert!(fit("nginx.service", "/system.slice/nginx.service"));
        assert!(fit("nginx", "/system.slice/nginx.service"));
        assert!(fit("system.slice/*", "/system.slice/nginx.service"));
        assert!(fit("/", "/"));
        assert!(!fit("/", "/a"));
    }
}
