//! Records of an object in a store, which are taken by an index.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    ops::{ControlFlow, Range},
    sync::{Arc, Mutex},
    thread,
};

use tfarrow_codec::OnError;
use tfarrow_dataset::{Compression, resolve};
use tfarrow_index::{Dataset, DatasetOptions, IndexPlace};
use tfarrow_scan::{IndexOptions, index};
use tfarrow_testkit::frame;

use crate::{compressed, compressed_index::payloads, index::builder_of};

/// A web server of one file.
struct Server {
    url: String,
    object: Arc<Mutex<Object>>,
}

struct Object {
    bytes: Vec<u8>,
    tag: u32,
    /// The ranges that were sent.
    sent: Vec<Range<usize>>,
}

impl Server {
    fn start(bytes: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a.tfrecord", listener.local_addr().unwrap());
        let object = Arc::new(Mutex::new(Object {
            bytes,
            tag: 1,
            sent: Vec::new(),
        }));
        let served = Arc::clone(&object);
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &served);
            }
        });
        Self { url, object }
    }
}

/// Answers one request.
fn answer(mut stream: TcpStream, object: &Mutex<Object>) {
    let mut range: Option<(usize, Option<usize>)> = None;
    let mut request = String::new();
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let line = line.unwrap().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("range: bytes=") {
            let (from, to) = bytes.split_once('-').unwrap();
            range = Some((from.parse().unwrap(), to.parse().ok()));
        }
        if request.is_empty() {
            request = line;
        }
    }
    let mut object = object.lock().unwrap();
    let size = object.bytes.len();
    let (status, begin, end) = match range {
        None => ("200 OK", 0, size),
        Some((from, None)) => ("206 Partial Content", from, size),
        Some((from, Some(last))) => ("206 Partial Content", from, size.min(last + 1)),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Range: bytes {begin}-{}/{size}\r\n\
         Accept-Ranges: bytes\r\nETag: \"{}\"\r\nLast-Modified: Mon, 30 Nov 2026 00:00:00 GMT\r\n\
         Connection: close\r\n\r\n",
        end - begin,
        end - 1,
        object.tag,
    );
    stream.write_all(head.as_bytes()).unwrap();
    if !request.starts_with("head") {
        object.sent.push(begin..end);
        // A client closes the connection when it has read enough.
        let _ = stream.write_all(&object.bytes[begin..end]);
    }
}

#[test]
fn records_of_an_object_are_taken_by_requests_for_ranges() {
    let payloads = payloads(12_000);
    let frames = frame::file(&payloads);
    for compression in [Compression::None, Compression::Gzip] {
        let bytes = compressed(&frames, compression);
        let server = Server::start(bytes.clone());
        let shards = resolve(&[&server.url]).unwrap();
        assert!(shards[0].is_remote());
        let folder = tempfile::tempdir().unwrap();
        let place = IndexPlace::Folder(folder.path().display().to_string());
        let options = IndexOptions {
            place: place.clone(),
            ..IndexOptions::default()
        };
        index(&shards, &options, &|_, _| ControlFlow::Continue(())).unwrap();
        let options = DatasetOptions {
            indexes: Some(place),
            ..DatasetOptions::default()
        };
        let builder = builder_of(&shards, OnError::Fail).unwrap();
        server.object.lock().unwrap().sent.clear();
        let progress = |_, _| ControlFlow::Continue(());
        let dataset = Dataset::open(shards.clone(), builder, &options, &progress).unwrap();
        assert_eq!(dataset.len(), 12_000);
        let numbers = [11_999, 0, 1, 2, 6_000, 0];
        let fetched = dataset.fetch(&numbers, 1).unwrap();
        for (place, number) in numbers.iter().enumerate() {
            assert_eq!(
                fetched.records().data(place).unwrap(),
                payloads[*number as usize]
            );
        }
        // The head of the object, and three places.
        let sent = server.object.lock().unwrap().sent.clone();
        let count: usize = sent.iter().map(Range::len).sum();
        assert!(
            count < bytes.len() / 2,
            "{count} of {} bytes: {sent:?}",
            bytes.len()
        );
        assert_eq!(dataset.take(&numbers).unwrap().num_rows(), numbers.len());

        // Another object is an error.
        server.object.lock().unwrap().tag = 2;
        let error = dataset.fetch(&[3], 1).unwrap_err().to_string();
        assert!(error.contains(&server.url), "{error}");
    }
}
