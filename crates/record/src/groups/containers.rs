//! What containers are called, where their engines keep it in files.
//!
//! | engine | where |
//! |---|---|
//! | Docker | `/var/lib/docker/containers/ID/config.v2.json`: `"Name":"/web"` |
//! | podman | `/var/lib/containers/storage/DRIVER-containers/containers.json`: `"names":["web"]` |
//! | containerd | `/run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json`, of pods |

use std::fs;
use std::path::Path;

const DOCKER: &str = "var/lib/docker/containers";
const PODMAN: &str = "var/lib/containers/storage";
const CONTAINERD: &str = "run/containerd/io.containerd.runtime.v2.task/k8s.io";

/// Of the containers with these ids, those that have a name below `root`: id and name, in order.
pub(super) fn names(root: &Path, ids: &[&str]) -> Vec<(String, String)> {
    let folders = fs::read_dir(root.join(PODMAN)).into_iter().flatten().flatten();
    let of_driver = |folder: fs::DirEntry| {
        let is_list = folder.file_name().to_str()?.ends_with("-containers");
        fs::read_to_string(folder.path().join("containers.json")).ok().filter(|_| is_list)
    };
    let podman: String = folders.filter_map(of_driver).collect();
    let name = |id: &str| {
        docker(root, id).or_else(|| of_podman(&podman, id)).or_else(|| of_kubernetes(root, id))
    };
    ids.iter().filter_map(|id| Some(((*id).to_owned(), name(id)?))).collect()
}

fn docker(root: &Path, id: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(DOCKER).join(id).join("config.v2.json")).ok()?;
    // Volumes have names too, without a slash before them.
    string(&text, "\"Name\":\"/")
}

fn of_podman(containers: &str, id: &str) -> Option<String> {
    let at = containers.find(&format!("\"id\":\"{id}\""))?;
    string(&containers[at..], "\"names\":[\"")
}

fn of_kubernetes(root: &Path, id: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(CONTAINERD).join(id).join("config.json")).ok()?;
    let pod = string(&text, "\"io.kubernetes.cri.sandbox-name\":\"")?;
    // The one that holds the pod's namespaces has no name.
    match string(&text, "\"io.kubernetes.cri.container-name\":\"") {
        Some(container) => Some(format!("{pod}/{container}")),
        None => Some(pod),
    }
}

/// What follows `key` up to the end of its string: names of containers need no escapes.
fn string(json: &str, key: &str) -> Option<String> {
    let rest = &json[json.find(key)? + key.len()..];
    let name = &rest[..rest.find('"')?];
    (!name.is_empty() && !name.contains('\\')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_is_asked_in_its_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            &format!("{DOCKER}/aa/config.v2.json"),
            r#"{"MountPoints":{"/d":{"Name":"volume"}},"Name":"/web","Driver":"overlay2"}"#,
        );
        let list = format!("{PODMAN}/vfs-containers/containers.json");
        write(&list, r#"[{"id":"cc","names":["other"]},{"id":"bb","names":["db"],"image":"x"}]"#);
        write(
            &format!("{CONTAINERD}/dd/config.json"),
            r#"{"annotations":{"io.kubernetes.cri.container-name":"nginx",
                "io.kubernetes.cri.sandbox-name":"web-7d4b9"}}"#,
        );
        let found = names(root, &["aa", "bb", "dd", "ee"]);
        let found: Vec<(&str, &str)> = found.iter().map(|(id, n)| (&**id, &**n)).collect();
        assert_eq!(found, [("aa", "web"), ("bb", "db"), ("dd", "web-7d4b9/nginx")]);
    }
}
