//! The names of containers, from the files of their engines.
//!
//! | engine | where |
//! |---|---|
//! | Docker | `/var/lib/docker/containers/ID/config.v2.json`: `"Name":"/web"` |
//! | podman | `/var/lib/containers/storage/DRIVER-containers/containers.json`: `"names":["web"]` |
//! | containerd | `/run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json`, of pods |

use serde_json::Value;
use std::fs;
use std::path::Path;

const DOCKER: &str = "var/lib/docker/containers";
const PODMAN: &str = "var/lib/containers/storage";
const CONTAINERD: &str = "run/containerd/io.containerd.runtime.v2.task/k8s.io";

/// Ids and names, in order, of the containers among `ids` that have a name below `root`.
pub(super) fn names(root: &Path, ids: &[&str]) -> Vec<(String, String)> {
    let folders = fs::read_dir(root.join(PODMAN)).into_iter().flatten().flatten();
    let of_driver = |folder: fs::DirEntry| {
        let is_list = folder.file_name().to_str()?.ends_with("-containers");
        read(&folder.path().join("containers.json")).filter(|_| is_list)
    };
    let podman: Vec<Value> = folders.filter_map(of_driver).collect();
    let name = |id: &str| {
        let name =
            docker(root, id).or_else(|| of_podman(&podman, id)).or_else(|| of_kubernetes(root, id));
        name.filter(|name| !name.is_empty())
    };
    ids.iter().filter_map(|id| Some(((*id).to_owned(), name(id)?))).collect()
}

/// A JSON file, if it exists and is complete.
fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn docker(root: &Path, id: &str) -> Option<String> {
    let config = read(&root.join(DOCKER).join(id).join("config.v2.json"))?;
    Some(config["Name"].as_str()?.trim_start_matches('/').to_owned())
}

fn of_podman(lists: &[Value], id: &str) -> Option<String> {
    let mut all = lists.iter().filter_map(Value::as_array).flatten();
    Some(all.find(|c| c["id"] == id)?["names"][0].as_str()?.to_owned())
}

fn of_kubernetes(root: &Path, id: &str) -> Option<String> {
    let config = read(&root.join(CONTAINERD).join(id).join("config.json"))?;
    let said = |what: &str| config["annotations"][format!("io.kubernetes.cri.{what}")].as_str();
    let pod = said("sandbox-name")?;
    // The container that holds the pod's namespaces has no name.
    Some(match said("container-name") {
        Some(container) => format!("{pod}/{container}"),
        None => pod.to_owned(),
    })
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
