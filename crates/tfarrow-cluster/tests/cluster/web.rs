//! A web server that fails at first.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
};

/// Number of times that a request for the same bytes is answered with the status 500 before it
/// succeeds.
const FAILURES: usize = 2;

/// Serves `content` as `data.tfrecord`, and returns its URL. The server ends with the process.
pub(crate) fn serve(content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/data.tfrecord", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut requests = HashMap::new();
        for stream in listener.incoming().map_while(Result::ok) {
            // A client may close its connection early.
            _ = answer(stream, &content, &mut requests);
        }
    });
    url
}

fn answer(
    mut stream: TcpStream,
    content: &[u8],
    requests: &mut HashMap<String, usize>,
) -> std::io::Result<()> {
    let mut header = String::new();
    for line in BufReader::new(&stream).lines() {
        match line?.to_ascii_lowercase() {
            end if end.is_empty() => break,
            range if range.starts_with("range:") => header = range,
            _ => {}
        }
    }
    let count = requests.entry(header.clone()).or_default();
    *count += 1;
    if !count.is_multiple_of(FAILURES + 1) {
        return stream
            .write_all(b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let all = content.len();
    let range = header
        .strip_prefix("range: bytes=")
        .and_then(|range| range.split_once('-'));
    let (status, range) = match range {
        Some((first, last)) => {
            let end = last.parse().map_or(all, |last: usize| all.min(last + 1));
            ("206 Partial Content", first.parse().unwrap()..end)
        }
        None => ("200 OK", 0..all),
    };
    let (first, last) = (range.start, range.end - 1);
    let part = content.get(range).unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{last}/{all}\r\nConnection: close\r\n\r\n",
        part.len(),
    )?;
    stream.write_all(part)
}
