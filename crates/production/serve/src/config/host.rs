//! `[[host]]`: virtual hosts.

use std::path::{Path, PathBuf};

use uncork_config::{ConfigError, Node, Result, Section, each};

use super::keys;
use super::site_tables::{header_value, site_tables};
use crate::identity::CertificateFiles;
use crate::site::SiteOptions;
use crate::spec::HostSpec;

/// The virtual hosts of a file. What a host leaves out is as the server has it: `root`, `options`.
///
/// # Errors
///
/// A table that is wrong, with its place.
pub fn read_hosts(file: &Node, root: &Path, options: &SiteOptions) -> Result<Vec<HostSpec>> {
    each(file, "host", keys::HOST, |host| read_host(host, root, options))
}

fn read_host(host: &Section<'_>, root: &Path, options: &SiteOptions) -> Result<HostSpec> {
    let names = host.need("names", "[\"example.org\"]")?;
    let members = names.list()?;
    if members.is_empty() {
        return Err(ConfigError::new(&names.place, "a host without a name")
            .help("write names = [\"example.org\"]"));
    }
    let mut site = options.clone();
    if let Some(index) = host.read("index", Node::flag)? {
        site.index = index;
    }
    if let Some(precompressed) = host.read("precompressed", Node::flag)? {
        site.precompressed = precompressed;
    }
    site.cors = host.read("cors", header_value)?.or(site.cors);
    site.cache_control = host.read("cache_control", header_value)?.or(site.cache_control);
    site_tables(|key| host.get(key), &mut site)?;
    Ok(HostSpec {
        names: members.iter().map(Node::parse).collect::<Result<_>>()?,
        root: host.read("root", path)?.unwrap_or_else(|| root.to_owned()),
        site,
        certificate: certificate(host)?,
    })
}

fn certificate(host: &Section<'_>) -> Result<Option<CertificateFiles>> {
    match (host.read("tls_cert", path)?, host.read("tls_key", path)?) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(CertificateFiles { certificate, key })),
        (Some(_), None) => host.need("tls_key", "\"key.pem\"").map(|_| None),
        (None, Some(_)) => host.need("tls_cert", "\"chain.pem\"").map(|_| None),
    }
}

fn path(node: &Node) -> Result<PathBuf> {
    node.text().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::super::read_site;
    use super::*;
    use crate::site::OwnHeader;

    fn read(text: &str) -> Result<(SiteOptions, Vec<HostSpec>)> {
        let file = Node::of_text(text)?;
        let mut options = SiteOptions::default();
        read_site(&file, &mut options)?;
        let hosts = read_hosts(&file, Path::new("public"), &options)?;
        Ok((options, hosts))
    }

    #[test]
    fn a_host_has_what_the_server_has_unless_it_says_otherwise() {
        let (options, hosts) = read(
            "root = \"public\"\n[headers]\nX-A = \"1\"\n[error_pages]\n404 = \"/404.html\"\n\
             [[redirect]]\nfrom = \"/old\"\nto = \"/new\"\nstatus = 301\n\
             [[host]]\nnames = [\"a.example\", \"*.a.example\"]\nroot = \"a\"\nindex = true\n\
             headers = { X-B = \"2\" }\ntls_cert = \"c.pem\"\ntls_key = \"k.pem\"\n\
             [[host]]\nnames = [\"b.example\"]\n",
        )
        .unwrap();
        let [a, b] = hosts.as_slice() else { panic!("two hosts: {hosts:?}") };
        assert_eq!(b.site, options);
        assert_eq!((b.root.to_str(), &b.certificate), (Some("public"), &None));
        assert_eq!(a.names.len(), 2);
        assert!(a.site.index && !options.index && a.certificate.is_some());
        assert_eq!(a.site.headers, [OwnHeader::new("x-b", "2").unwrap()]);
        assert_eq!(
            (&a.site.redirects, &a.site.error_pages),
            (&options.redirects, &options.error_pages)
        );
    }

    #[test]
    fn errors_name_place_value_and_remedy() {
        for (text, message, help) in [
            (
                "[[host]]\nroot = \"a\"",
                "[[host]] has no `names`",
                "write names = [\"example.org\"]",
            ),
            ("[[host]]\nnames = [\"a b\"]", "not a host name", "write letters, digits"),
            (
                "[[host]]\nnames = [\"a\"]\ntls_cert = \"c\"",
                "[[host]] has no `tls_key`",
                "write tls_key",
            ),
            ("[[host]]\nnames = [\"a\"]\nrot = \"a\"", "unknown key `rot`", "did you mean `root`?"),
            ("[headers]\nDate = \"x\"", "the server sets this header itself", "leave it out"),
            ("[error_pages]\n200 = \"/a\"", "`200` has no error page", "write one of 400"),
            ("[error_pages]\n404 = \"a\"", "not the path of a file", "\"/404.html\""),
            (
                "[[redirect]]\nfrom = \"/a\"\nto = \"/b/*\"",
                "`*` in `to` needs one",
                "write `/old/*`",
            ),
            ("[[redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 305", "not a status", "write 301"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.message().starts_with(message), "{text}: {}", error.message());
            assert!(error.suggestion().unwrap_or_default().contains(help), "{text}: {error}");
        }
    }
}
