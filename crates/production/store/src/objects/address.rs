//! From an address to a store with the platform's credentials.

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, Error, ObjectStore, RetryConfig};
use std::time::Duration;
use url::Url;

use super::http::Connector;
use super::reason::reason;
use crate::{EXPECTED, StoreError};

/// A store, and what of it an address names.
pub(super) struct StoreLocation {
    pub(super) store: Box<dyn ObjectStore>,
    pub(super) prefix: Path,
    pub(super) is_read_only: bool,
}

pub(super) fn open(address: &str) -> Result<StoreLocation, StoreError> {
    let url = checked(address)?;
    let prefix = Path::from_url_path(url.path())
        .map_err(|error| StoreError::Address(format!("its path is not one of objects: {error}")))?;
    let store = build(&url).map_err(|error| {
        StoreError::Address(format!("{}; {}", reason(&error), settings(url.scheme())))
    })?;
    Ok(StoreLocation { store, prefix, is_read_only: url.scheme().starts_with("http") })
}

/// An address without credentials: it is in logs, errors and lists of processes.
fn checked(address: &str) -> Result<Url, StoreError> {
    let wrong = |reason: &str| Err(StoreError::Address(reason.to_owned()));
    let Ok(url) = Url::parse(address) else { return wrong(EXPECTED) };
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("it has a user or a password; credentials come from the environment");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("it has a query; credentials come from the environment");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return wrong(EXPECTED);
    }
    if url.scheme() == "http" {
        return wrong("http is not encrypted; use https");
    }
    Ok(url)
}

/// Where the settings of a store come from.
fn settings(scheme: &str) -> &'static str {
    match scheme {
        "s3" => "settings are in AWS_… variables, such as AWS_REGION and AWS_ENDPOINT_URL",
        "gs" => "settings are in GOOGLE_… variables, such as GOOGLE_SERVICE_ACCOUNT",
        "az" => "settings are in AZURE_… variables, such as AZURE_STORAGE_ACCOUNT_NAME",
        _ => EXPECTED,
    }
}

/// Four requests in at most half a minute: what polls comes again.
fn retry() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 3.,
    };
    RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(30) }
}

fn build(url: &Url) -> Result<Box<dyn ObjectStore>, Error> {
    let bucket = url.host_str().unwrap_or_default();
    Ok(match url.scheme() {
        "s3" => Box::new(
            AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry())
                .with_http_connector(Connector)
                .build()?,
        ),
        "gs" => Box::new(
            GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry())
                .with_http_connector(Connector)
                .build()?,
        ),
        "az" => Box::new(
            MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_retry(retry())
                .with_http_connector(Connector)
                .build()?,
        ),
        _ => Box::new(
            HttpBuilder::new()
                .with_url(&url[..url::Position::BeforePath])
                .with_retry(retry())
                .with_http_connector(Connector)
                .build()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_with_a_credential_or_without_encryption_is_refused_without_being_shown() {
        for address in [
            "https://user:hunter2@store.example/fleet",
            "https://hunter2@store.example/fleet",
            "https://store.example/fleet?sig=hunter2",
            "s3://bucket/fleet?X-Amz-Signature=hunter2",
            "s3://bucket/fleet#hunter2",
            "http://store.example/hunter2",
            "s3:///hunter2",
        ] {
            let error = checked(address).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(checked("s3://bucket/a/prefix").is_ok());
    }
}
