//! The `tensorflow.metadata.v0.Schema` of a data set: inferring one ([`infer`]), and access to its
//! features.
//!
//! A schema has a list of features. The feature lists of `tf.SequenceExample` records are, as in
//! TFX, the children of one struct feature with the name [`SEQUENCE`]:
//!
//! ```text
//! feature { name: "label" type: INT }                     -> is_list = false, path "label"
//! feature { name: "##SEQUENCE##" type: STRUCT
//!           struct_domain { feature { name: "frames" } } } -> is_list = true, path "##SEQUENCE##.frames"
//! ```

pub(crate) mod infer;

use crate::proto::{
    Feature, FeatureType, FixedShape, LifecycleStage, Schema, StructDomain, feature::DomainInfo,
};

/// Name of the struct feature that holds the feature lists of SequenceExamples, as TFX writes it.
pub(crate) const SEQUENCE: &str = "##SEQUENCE##";

/// Returns the path of a feature (or, with `is_list`, of a feature list) in a schema, as one
/// string.
///
/// A name with a dot, a quote or an unpaired parenthesis is quoted as by TFDV's `Path::Serialize`
/// (`path.cc`).
pub fn feature_path(is_list: bool, name: &str) -> String {
    match is_list {
        true => format!("{SEQUENCE}.{}", path_step(name)),
        false => path_step(name),
    }
}

/// Serializes one step of a path: a name that would parse as several steps is quoted, with quotes
/// doubled (`path.cc`).
pub(crate) fn path_step(name: &str) -> String {
    let in_brackets = name
        .strip_prefix('(')
        .and_then(|name| name.strip_suffix(')'));
    let is_plain = !name.is_empty() && !name.contains(['.', '(', ')', '\'']);
    match is_plain || in_brackets.is_some_and(|name| !name.contains(['(', ')'])) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "''")),
    }
}

/// Splits a path that [`feature_path`] made into the names of its steps.
pub(crate) fn path_names(path: &str) -> Vec<String> {
    match path
        .strip_prefix(SEQUENCE)
        .and_then(|rest| rest.strip_prefix('.'))
    {
        Some(step) => vec![SEQUENCE.to_owned(), unquoted(step)],
        None => vec![unquoted(path)],
    }
}

/// Returns the name that a step of a path was made of.
fn unquoted(step: &str) -> String {
    match step
        .strip_prefix('\'')
        .and_then(|step| step.strip_suffix('\''))
    {
        Some(quoted) => quoted.replace("''", "'"),
        None => step.to_owned(),
    }
}

/// Returns the features of a schema, each with whether it is a feature list.
pub(crate) fn features(schema: &Schema) -> impl Iterator<Item = (bool, &Feature)> {
    schema.feature.iter().flat_map(|feature| {
        let steps = match &feature.domain_info {
            Some(DomainInfo::StructDomain(steps)) if feature.name() == SEQUENCE => {
                steps.feature.as_slice()
            }
            _ => &[],
        };
        let own = (feature.name() != SEQUENCE).then_some((false, feature));
        own.into_iter().chain(steps.iter().map(|step| (true, step)))
    })
}

/// Calls `then` with each feature, whether it is a feature list, and the schema without its
/// features.
pub(crate) fn each_feature(
    schema: &mut Schema,
    mut then: impl FnMut(&mut Feature, bool, &mut Schema),
) {
    let mut features = std::mem::take(&mut schema.feature);
    for feature in &mut features {
        if feature.name() != SEQUENCE {
            then(feature, false, schema);
        } else if let Some(DomainInfo::StructDomain(steps)) = &mut feature.domain_info {
            steps
                .feature
                .iter_mut()
                .for_each(|step| then(step, true, schema));
        }
    }
    schema.feature = features;
}

/// Adds a feature list to the struct feature [`SEQUENCE`], which is created if the schema has none.
pub(crate) fn push_feature_list(schema: &mut Schema, feature: Feature) {
    if let Some(sequence) = schema
        .feature
        .iter_mut()
        .find(|feature| feature.name() == SEQUENCE)
    {
        return push_child(sequence, feature);
    }
    let name = Some(SEQUENCE.to_owned());
    let mut sequence = Feature {
        name,
        r#type: Some(FeatureType::Struct.into()),
        ..Feature::default()
    };
    push_child(&mut sequence, feature);
    schema.feature.push(sequence);
}

/// Adds a child to a struct feature; a domain that is not a `StructDomain` is replaced by one.
fn push_child(parent: &mut Feature, child: Feature) {
    match &mut parent.domain_info {
        Some(DomainInfo::StructDomain(children)) => children.feature.push(child),
        other => {
            let children = StructDomain {
                feature: vec![child],
                ..StructDomain::default()
            };
            *other = Some(DomainInfo::StructDomain(children));
        }
    }
}

/// Returns whether the lifecycle stage of a feature exempts it from validation (TFDV's
/// `FeatureIsDeprecated`).
pub(crate) fn is_deprecated(feature: &Feature) -> bool {
    use LifecycleStage::{Alpha, DebugOnly, Deprecated, Disabled, Planned};
    let is_exempt = matches!(
        feature.lifecycle_stage(),
        Planned | Alpha | Deprecated | DebugOnly | Disabled
    );
    feature.deprecated() || (feature.lifecycle_stage.is_some() && is_exempt)
}

/// Returns the number of values of a shape: the product of its dimensions.
pub(crate) fn shape_size(shape: &FixedShape) -> u64 {
    let sizes = shape
        .dim
        .iter()
        .map(|dim| u64::try_from(dim.size()).unwrap_or_default());
    sizes.fold(1, u64::saturating_mul)
}
