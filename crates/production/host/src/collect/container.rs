//! Which kind of container the caller runs in.

use std::fs;
use std::path::Path;

use crate::facts::Container;

/// Kubernetes sets it in each container of a pod.
const SERVICE: &str = "KUBERNETES_SERVICE_HOST";
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";
const MARKS: [&str; 3] = [".dockerenv", "run/.containerenv", "run/systemd/container"];

pub(super) fn container() -> Option<Container> {
    below(Path::new("/"), std::env::var_os(SERVICE).is_some())
}

/// The container with its files below `root`. A pod may lack any one of the signs: programs clear their
/// environment, `automountServiceAccountToken: false` leaves the account out, and a namespace hides the cgroup.
fn below(root: &Path, has_service: bool) -> Option<Container> {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let is_pod = has_service
        || root.join(ACCOUNT).is_dir()
        || read("proc/self/cgroup").contains("/kubepods")
        || read("proc/self/mountinfo").lines().any(is_hosts_file_of_kubelet);
    let is_container = || MARKS.iter().any(|mark| root.join(mark).exists());
    is_pod.then_some(Container::Kubernetes).or_else(|| is_container().then_some(Container::Other))
}

/// Whether a line of mountinfo (proc(5)) is the `/etc/hosts` that the kubelet writes for each pod, in
/// `ROOT-DIR/pods/UID/etc-hosts`.
fn is_hosts_file_of_kubelet(line: &str) -> bool {
    let mut fields = line.split(' ').skip(3);
    let (Some(root), Some(mount_point)) = (fields.next(), fields.next()) else { return false };
    mount_point == "/etc/hosts" && root.contains("/pods/") && root.ends_with("/etc-hosts")
}

#[cfg(test)]
mod tests {
    use uncork_testkit::Scratch;

    use super::*;

    #[test]
    fn each_sign_alone_identifies_a_pod() {
        let kubepods = "0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-7.scope\n";
        let hosts =
            "901 880 8:1 /var/lib/kubelet/pods/0b5c/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
        let on_the_node = "77 26 0:50 / /var/lib/kubelet/pods/0b5c/volumes/a rw - tmpfs tmpfs rw\n";
        let docker =
            "901 880 8:1 /var/lib/docker/containers/9f/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
        let cases = [
            ("proc/self/cgroup", kubepods, Some(Container::Kubernetes)),
            ("proc/self/cgroup", "0::/user.slice\n", None),
            ("proc/self/mountinfo", hosts, Some(Container::Kubernetes)),
            ("proc/self/mountinfo", on_the_node, None),
            ("proc/self/mountinfo", docker, None),
            (".dockerenv", "", Some(Container::Other)),
            ("var/run/secrets/kubernetes.io/serviceaccount/token", "", Some(Container::Kubernetes)),
        ];
        for (file, text, expected) in cases {
            let root = Scratch::new("container");
            root.write(file, text);
            assert_eq!(below(&root.path(""), false), expected, "{file}: {text}");
        }
        let root = Scratch::new("container");
        root.write(".dockerenv", "");
        assert_eq!(below(&root.path(""), true), Some(Container::Kubernetes));
    }
}
