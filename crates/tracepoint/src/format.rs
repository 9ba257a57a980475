//! Parser of tracefs `format` text.
//!
//! ```text
//! name: sched_switch
//! ID: 372
//! format:
//!         field:unsigned short common_type;  offset:0;  size:2;  signed:0;
//!         ...
//!         field:char prev_comm[16];          offset:8;  size:16; signed:0;
//!
//! print fmt: "prev_comm=%s ...", REC->prev_comm, ...
//! ```

/// One field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, without array brackets.
    pub name: String,
    /// Its C type as written (`unsigned long`, `__data_loc char[]`).
    pub ty: String,
    /// Bytes from the start of the record.
    pub offset: u32,
    /// Bytes; for `__data_loc` the size of the locator (4), not of the data. 0 for a C99
    /// flexible array.
    pub size: u32,
    /// Signed integer.
    pub signed: bool,
    /// Number of elements if declared as an array; 0 for `[]`.
    pub array: Option<u32>,
    /// `__data_loc`: 16 bits offset from the start of the record, 16 bits length.
    pub data_loc: bool,
    /// `__rel_loc`: like `data_loc`, but relative to the end of the locator itself.
    pub rel_loc: bool,
}

/// The layout of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Name without system.
    pub name: String,
    /// System (`sched`), given from outside: the text does not contain it.
    pub system: String,
    /// The id in `common_type`.
    pub id: u16,
    /// Common fields first.
    pub fields: Vec<Field>,
    /// The text after `print fmt:`.
    pub print_fmt: String,
}

/// Why a format text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found:?}")]
pub struct FormatError {
    /// 1-based line in the text.
    pub line: usize,
    /// What the format demands.
    pub expected: &'static str,
    /// What the text contains.
    pub found: String,
}

impl Format {
    /// Parses one event's description.
    ///
    /// # Errors
    /// If the name or id is missing, or a field line has no offset or size.
    pub fn parse(text: &str, system: &str) -> Result<Format, FormatError> {
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        let mut print_fmt = String::new();
        let mut lines = text.lines().enumerate();
        while let Some((n, line)) = lines.next() {
            let line_no = n + 1;
            let error = |expected, found: &str| FormatError {
                line: line_no,
                expected,
                found: found.chars().take(80).collect(),
            };
            let trimmed = line.trim();
            if let Some(rest) = trimmed.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = trimmed.strip_prefix("ID:") {
                id = Some(rest.trim().parse().map_err(|_| error("a 16-bit event id", rest))?);
            } else if trimmed.starts_with("field:") || trimmed.starts_with("field special:") {
                fields.push(
                    parse_field(trimmed)
                        .ok_or_else(|| error("field:TYPE NAME; offset:N; size:N;", trimmed))?,
                );
            } else if let Some(rest) = trimmed.strip_prefix("print fmt:") {
                print_fmt = rest.trim().to_owned();
                // A print format may run over several lines; nothing follows it.
                for (_, more) in lines.by_ref() {
                    print_fmt.push('\n');
                    print_fmt.push_str(more);
                }
                while print_fmt.ends_with('\n') {
                    print_fmt.pop();
                }
            }
        }
        let missing =
            |expected| FormatError { line: 1, expected, found: text.chars().take(40).collect() };
        Ok(Format {
            name: name.filter(|n: &String| !n.is_empty()).ok_or_else(|| missing("name: NAME"))?,
            system: system.to_owned(),
            id: id.ok_or_else(|| missing("ID: NUMBER"))?,
            fields,
            print_fmt,
        })
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// `field:unsigned long args[6]; offset:16; size:48; signed:0;`
fn parse_field(line: &str) -> Option<Field> {
    let (_, rest) = line.split_once(':')?;
    let mut parts = rest.split(';').map(str::trim);
    let decl = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", v)) => offset = v.parse().ok(),
            Some(("size", v)) => size = v.parse().ok(),
            Some(("signed", v)) => signed = Some(v.trim() != "0"),
            _ => {}
        }
    }
    let (offset, size): (u32, u32) = (offset?, size?);
    let data_loc = decl.starts_with("__data_loc");
    let rel_loc = decl.starts_with("__rel_loc");
    let (mut ty, mut name) =
        decl.rsplit_once([' ', '*']).map(|(t, n)| (&decl[..t.len() + 1], n))?;
    let mut array = None;
    if let Some((base, dim)) = name.split_once('[') {
        name = base;
        // The dimension may be a macro (`comm[TASK_COMM_LEN]`): the count then follows from size.
        array = Some(dim.trim_end_matches(']').parse().unwrap_or(0));
    } else if ty.trim_end().ends_with("[]") {
        array = Some(0);
    }
    ty = ty.trim();
    if name.is_empty() {
        return None;
    }
    // Kernels before 2.6.37 print no `signed:`; then the type decides.
    let signed = signed
        .unwrap_or_else(|| !ty.contains("unsigned") && !ty.starts_with('u') && !ty.contains('*'));
    Some(Field {
        name: name.to_owned(),
        ty: ty.to_owned(),
        offset,
        size,
        signed,
        array,
        data_loc,
        rel_loc,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n\
        \tfield:void * fn;\toffset:48;\tsize:8;\tsigned:0;\n\
        \tfield:char *ptr;\toffset:56;\tsize:8;\tsigned:0;\n\nprint fmt: \"a\",\n REC->b\n";

    #[test]
    fn every_shape_of_field() {
        let f = Format::parse(SWITCH, "sched").unwrap();
        assert_eq!((f.name.as_str(), f.id, f.fields.len()), ("sched_switch", 372, 7));
        let comm = f.field("prev_comm").unwrap();
        assert_eq!(
            (comm.offset, comm.size, comm.array, comm.ty.as_str()),
            (8, 16, Some(16), "char")
        );
        assert!(f.field("prev_state").unwrap().signed);
        let name = f.field("name").unwrap();
        assert!(name.data_loc && name.array == Some(0) && name.ty == "__data_loc char[]");
        assert_eq!(f.field("fn").unwrap().ty, "void *");
        assert_eq!(f.field("ptr").unwrap().ty, "char *");
        assert_eq!(f.print_fmt, "\"a\",\n REC->b");
    }

    #[test]
    fn damaged_texts_are_refused_with_their_line() {
        assert_eq!(Format::parse("name: x\nID: 99999999\n", "s").unwrap_err().line, 2);
        assert!(Format::parse("ID: 3\n", "s").is_err());
        assert!(
            Format::parse("name: x\nID: 3\n\tfield:int a;\toffset:zero;\tsize:4;\n", "s").is_err()
        );
        assert!(Format::parse("", "s").is_err());
    }
}
