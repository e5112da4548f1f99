//! Tests of the codec against the reference implementation of the test kit, one module for each
//! subject.

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod encode;
#[cfg(test)]
mod exact;
#[cfg(test)]
mod example_list;
#[cfg(test)]
mod filter;
#[cfg(test)]
mod front_door;
#[cfg(test)]
mod goldens;
#[cfg(test)]
mod infer;
#[cfg(test)]
#[cfg(feature = "messages")]
mod message;
#[cfg(test)]
mod misfit;
#[cfg(test)]
mod odd_wire;
#[cfg(test)]
mod places;
#[cfg(test)]
mod projection;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod resync;
#[cfg(test)]
mod settled;
#[cfg(test)]
mod skip;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod types;
