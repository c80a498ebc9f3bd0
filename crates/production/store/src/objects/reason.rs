//! Why a request failed, in one line without a credential.

use std::error::Error as _;

use object_store::Error;

/// The most characters of a reason.
const MOST: usize = 300;

/// What an operator needs of an error: the answer of the store or of the network, and what to do.
pub(super) fn reason(error: &Error) -> String {
    let text = innermost(error);
    let answer = answer(&text);
    let help = help(error, &text);
    let line: String = answer.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let line: String = line.chars().take(MOST).collect();
    match help {
        Some(help) => format!("{line}; {help}"),
        None => line,
    }
}

/// Whether it is the bucket that does not exist, not the object.
pub(super) fn is_of_store(error: &Error) -> bool {
    let text = innermost(error);
    ["NoSuchBucket", "ContainerNotFound", "bucket does not exist"]
        .iter()
        .any(|it| text.contains(it))
}

/// The last cause. Those before it repeat it, with addresses of requests, which may be signed.
fn innermost(error: &Error) -> String {
    let mut last = error.source();
    while let Some(next) = last.and_then(std::error::Error::source) {
        last = Some(next);
    }
    last.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Of an answer in XML its code and its message: the rest repeats what was signed.
fn answer(text: &str) -> String {
    let status = text.split(": ").nth(1).filter(|_| text.starts_with("Server returned"));
    let between = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once('<')?.0)
    };
    let code = between("Code").or_else(|| between("code"));
    let message = between("Message").or_else(|| between("message"));
    match (status, code) {
        (Some(status), Some(code)) => {
            let message = message.map(|it| format!(", {it}")).unwrap_or_default();
            format!("{status}, {code}{message}")
        }
        (Some(status), None) => status.to_owned(),
        (None, _) => text.to_owned(),
    }
}

fn help(error: &Error, text: &str) -> Option<&'static str> {
    match error {
        Error::NotFound { .. } if is_of_store(error) => {
            Some("make the bucket, or correct its name")
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            Some("check the credentials and what they may do")
        }
        _ if text.contains("metadata") || text.contains("169.254.169.254") => Some(
            "no credentials: set those of the store in the environment, or give the host a role",
        ),
        _ if text.contains("region") => Some("set AWS_REGION to the region of the bucket"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn denied(body: &str) -> Error {
        let text = format!("Server returned non-2xx status code: 403 Forbidden: {body}");
        let source = Box::new(io::Error::other(text));
        Error::PermissionDenied { path: "fleet/rollout".to_owned(), source }
    }

    #[test]
    fn answer_in_xml_has_code_and_message_without_what_was_signed() {
        let error = denied(
            "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>it does not match</Message>\
             <AWSAccessKeyId>AKID</AWSAccessKeyId><StringToSign>hunter2</StringToSign></Error>",
        );
        let reason = reason(&error);
        assert_eq!(
            reason,
            "403 Forbidden, SignatureDoesNotMatch, it does not match; check the credentials and what they may do"
        );
    }

    #[test]
    fn other_answer_has_its_status_alone() {
        let reason = reason(&denied("token=hunter2\n<html>"));
        assert_eq!(reason, "403 Forbidden; check the credentials and what they may do");
    }

    #[test]
    fn text_of_a_stranger_is_one_line_and_cut() {
        let source = Box::new(io::Error::other("x\n".repeat(1000)));
        let reason = reason(&Error::Generic { store: "S3", source });
        assert_eq!(reason.lines().count(), 1);
        assert_eq!(reason.chars().count(), MOST);
    }
}
